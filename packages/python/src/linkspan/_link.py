"""What a conversation needs from the other side: `linkspan stdio` or a server."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Protocol

from ._inbox import Inbox

Message = dict[str, Any]
"""One object of the bridge or one canonical event; `docs/serve.md` describes them."""


class Link(Protocol):
    """Takes the controls of the bridge, and receives the events of sessions."""

    @property
    def inbox(self) -> Inbox[Message]:
        """What has come and was no reply."""
        ...

    def send(self, control: str, **fields: Any) -> Future[Message]:
        """Send a control; the reply comes later. A field that is `None` is left out."""
        ...

    def request(self, control: str, **fields: Any) -> Message:
        """Send a control and wait for its reply."""
        ...

    async def arequest(self, control: str, **fields: Any) -> Message:
        """Send a control and wait for its reply, without blocking the event loop."""
        ...

    def release(self) -> None:
        """Let the other side go, without waiting for it."""
        ...

    def close(self) -> None:
        """Let the other side go, and wait until nothing is left of it. May be called again."""
        ...

    async def aclose(self) -> None:
        """`close`, without blocking the event loop."""
        ...
