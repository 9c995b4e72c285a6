"""A run, event by event."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, cast

from ._errors import LinkspanError, RunFailed
from ._link import Link, Message
from ._options import Decision
from .types import AskOpenedEvent, Event, RunEnded

# What an agent wrote to stderr, of which an error shows the end.
_MAX_STDERR_LINES = 40


class RunReader:
    """Finds the events of one run among everything that comes. Does no input or output."""

    def __init__(self, session: str, prompt: str, cursor: int) -> None:
        self.session = session
        self.ended: RunEnded | None = None
        self.cursor = cursor
        self._prompt = prompt
        self._run: str | None = None
        # From a `run.started` on, until its prompt shows whether it is ours.
        self._held: list[Event] = []
        self._stderr: deque[str] = deque(maxlen=_MAX_STDERR_LINES)

    def take(self, message: Message) -> list[Event]:
        """Return the events of the run that this message completes."""
        if message.get("session") != self.session or "seq" not in message or self.ended:
            return []
        event = cast(Event, message)
        if event["seq"] <= self.cursor:
            return []
        self.cursor = event["seq"]
        if self._run is None:
            return self._find(event)
        if event["type"] == "notice.raised" and event["data"]["code"] == "stderr":
            self._stderr.append(event["data"]["text"])
        if event["type"] == "run.ended" and event.get("run") == self._run:
            self.ended = event["data"]
        return [event]

    def _find(self, event: Event) -> list[Event]:
        # Another client may have given a prompt to the session as well; its run comes first.
        if event["type"] == "run.started":
            self._held = []
        self._held.append(event)
        is_prompt = (
            event["type"] == "item.closed"
            and event["origin"] == "client"
            and event["data"]["item"]["kind"] == "message"
            and event["data"]["item"]["text"].strip() == self._prompt.strip()
        )
        if not is_prompt:
            return []
        self._run = event.get("run")
        return self._held

    def result(self) -> RunEnded:
        """How the run ended, if it was completed."""
        assert self.ended is not None
        if self.ended["outcome"] == "completed":
            return self.ended
        error = self.ended.get("error")
        raise RunFailed(
            error["code"] if error else self.ended["outcome"],
            error["message"] if error else f"the run ended as `{self.ended['outcome']}`",
            outcome=self.ended["outcome"],
            stderr="\n".join(self._stderr),
        )


def settle_fields(
    ask: AskOpenedEvent | str,
    decision: Decision,
    message: str | None,
    input: dict[str, Any] | None,
) -> dict[str, Any]:
    """The fields of `ask.settle`."""
    ask_id = ask if isinstance(ask, str) else f"{ask['session']}:{ask['seq']}"
    return {"askId": ask_id, "decision": decision, "message": message, "input": input}


class Run:
    """The events of a run, as they happen.

    Leaving it early (`break` and `close`, or the end of a `with` block) aborts the run.
    """

    def __init__(self, link: Link, reader: RunReader, on_end: Callable[[], None]) -> None:
        self._link = link
        self._reader = reader
        self._ready: deque[Event] = deque()
        self._on_end = on_end
        self._is_closed = False

    @property
    def session(self) -> str:
        """The id of the session."""
        return self._reader.session

    @property
    def cursor(self) -> int:
        """The number of the last event that came."""
        return self._reader.cursor

    def __iter__(self) -> Run:
        return self

    def __next__(self) -> Event:
        while not self._ready:
            if self._reader.ended or self._is_closed:
                self.close()
                raise StopIteration
            message = self._link.inbox.take()
            assert message is not None
            self._ready.extend(self._reader.take(message))
        return self._ready.popleft()

    def result(self) -> RunEnded:
        """Wait for the end of the run and return it; `RunFailed` if the run was not completed."""
        for _ in self:
            pass
        return self._reader.result()

    def settle(
        self,
        ask: AskOpenedEvent | str,
        decision: Decision,
        *,
        message: str | None = None,
        input: dict[str, Any] | None = None,
    ) -> None:
        """Answer what the agent asks: an `ask.opened` event, or the id of an ask."""
        self._link.request("ask.settle", **settle_fields(ask, decision, message, input))

    def abort(self) -> None:
        """Stop the run; its end still comes. Any thread may call this."""
        if not self._reader.ended:
            self._link.request("run.abort", sessionId=self.session)

    def close(self) -> None:
        """Abort the run if it has not ended, and wait until it has. May be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        self._ready.clear()
        finish(self._link, self._reader)
        self._on_end()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Nobody can wait here: the agent ends by itself.
        if not self._is_closed and not self._reader.ended:
            abandon(self._link, self._reader)


class AsyncRun:
    """The events of a run, as they happen, for `async for`.

    Leaving it early aborts the run.
    """

    def __init__(
        self,
        start: Callable[[], Awaitable[tuple[Link, RunReader]]],
        on_end: Callable[[], Awaitable[None]],
    ) -> None:
        self._start = start
        self._at: tuple[Link, RunReader] | None = None
        self._ready: deque[Event] = deque()
        self._on_end = on_end
        self._is_closed = False

    @property
    def session(self) -> str | None:
        """The id of the session, once the run has begun."""
        return self._at[1].session if self._at else None

    @property
    def cursor(self) -> int:
        """The number of the last event that came."""
        return self._at[1].cursor if self._at else 0

    def __aiter__(self) -> AsyncRun:
        return self

    async def __anext__(self) -> Event:
        link, reader = await self._begun()
        while not self._ready:
            if reader.ended or self._is_closed:
                await self.aclose()
                raise StopAsyncIteration
            self._ready.extend(reader.take(await link.inbox.atake()))
        return self._ready.popleft()

    async def result(self) -> RunEnded:
        """Wait for the end of the run and return it; `RunFailed` if the run was not completed."""
        async for _ in self:
            pass
        _, reader = await self._begun()
        return reader.result()

    async def settle(
        self,
        ask: AskOpenedEvent | str,
        decision: Decision,
        *,
        message: str | None = None,
        input: dict[str, Any] | None = None,
    ) -> None:
        """Answer what the agent asks: an `ask.opened` event, or the id of an ask."""
        link, _ = await self._begun()
        await link.arequest("ask.settle", **settle_fields(ask, decision, message, input))

    async def abort(self) -> None:
        """Stop the run; its end still comes."""
        link, reader = await self._begun()
        if not reader.ended:
            await link.arequest("run.abort", sessionId=reader.session)

    async def aclose(self) -> None:
        """Abort the run if it has not ended, and wait until it has. May be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        self._ready.clear()
        if self._at is not None:
            await afinish(*self._at)
        await self._on_end()

    async def __aenter__(self) -> AsyncRun:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        # Nobody can wait here: the agent ends by itself.
        if self._at is not None and not self._is_closed and not self._at[1].ended:
            abandon(*self._at)

    async def _begun(self) -> tuple[Link, RunReader]:
        if self._at is None:
            try:
                self._at = await self._start()
            except BaseException:
                self._is_closed = True
                await self._on_end()
                raise
        return self._at


def finish(link: Link, reader: RunReader) -> None:
    """Abort a run that has not ended, and wait for its end."""
    try:
        if not reader.ended:
            link.send("run.abort", sessionId=reader.session)
        while not reader.ended:
            message = link.inbox.take()
            assert message is not None
            reader.take(message)
    except LinkspanError:
        # The other side has ended, and the run with it.
        pass


async def afinish(link: Link, reader: RunReader) -> None:
    """`finish`, without blocking the event loop."""
    try:
        if not reader.ended:
            await link.arequest("run.abort", sessionId=reader.session)
        while not reader.ended:
            reader.take(await link.inbox.atake())
    except LinkspanError:
        # The other side has ended, and the run with it.
        pass


def abandon(link: Link, reader: RunReader) -> None:
    """Abort a run whose events are no longer read."""
    try:
        link.send("run.abort", sessionId=reader.session)
    except LinkspanError:
        # The other side has ended, and the run with it.
        pass
