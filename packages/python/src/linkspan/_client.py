"""A running `linkspan serve`, from Python."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlencode

from ._conversation import AsyncConversation, Conversation, Turns
from ._http import Follower, HttpLink, Server
from ._inbox import Inbox
from ._link import Message
from ._options import Decision, RunOptions
from ._run import AsyncRun, Run, settle_fields
from .types import AskOpenedEvent, Event

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Routes:
    """The requests that both clients make."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def conversation(
        self, session: str | None, fork: str | None, options: RunOptions
    ) -> Conversation:
        """A conversation that begins with its first prompt."""
        turns = Turns(session, fork, options)
        return Conversation._over(lambda: HttpLink(self.server), turns)

    def sessions(self, limit: int, engine: str | None, text: str | None) -> list[Message]:
        query = {"limit": limit, "engine": engine, "text": text}
        found = urlencode({key: value for key, value in query.items() if value is not None})
        return list(self.server.call("GET", f"/api/sessions?{found}")["sessions"])

    def session(self, session: str) -> Message:
        return dict(self.server.call("GET", f"/api/sessions/{quote(session, safe='')}"))

    def asks(self) -> list[Message]:
        return list(self.server.call("GET", "/api/asks")["asks"])

    def engines(self) -> list[Message]:
        return list(self.server.call("GET", "/api/engines")["engines"])

    def abort(self, session: str) -> bool:
        reply = HttpLink(self.server).request("run.abort", sessionId=session)
        return bool(reply["aborted"])

    def settle(self, fields: dict[str, Any]) -> None:
        HttpLink(self.server).request("ask.settle", **fields)


class Client:
    """A server, by its address and a token.

    Without a token the one of `LINKSPAN_TOKEN` is used. With `async with` it becomes an
    `AsyncClient`.
    """

    def __init__(self, url: str = "http://127.0.0.1:8787", token: str | None = None) -> None:
        self._routes = _Routes(Server(url, token))

    def run(
        self,
        prompt: str,
        *,
        session: str | None = None,
        fork: str | None = None,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Give an agent of the server a prompt, and iterate over what it does.

        The run is aborted when the loop is left early.
        """
        conversation = self._routes.conversation(session, fork, options)
        return conversation._send(prompt, conversation.close)

    def conversation(
        self,
        *,
        session: str | None = None,
        fork: str | None = None,
        **options: Unpack[RunOptions],
    ) -> Conversation:
        """A session of an agent of the server; nothing happens before its first prompt."""
        return self._routes.conversation(session, fork, options)

    def events(self, session: str, *, since: int = 0) -> Iterator[Event]:
        """Iterate over the events of a session, those that are to come included.

        `since` is the number of the last event that is known already. It goes on for ever; leaving
        the loop changes nothing for the session.
        """
        inbox: Inbox[Message] = Inbox()
        with closing(Follower(self._routes.server, session, since, inbox)):
            while True:
                yield cast(Event, inbox.take())

    def sessions(
        self, *, limit: int = 50, engine: str | None = None, text: str | None = None
    ) -> list[Message]:
        """The sessions of the server, the newest first."""
        return self._routes.sessions(limit, engine, text)

    def session(self, session: str) -> Message:
        """One session, with its runs, its asks and its queue."""
        return self._routes.session(session)

    def asks(self) -> list[Message]:
        """What agents of the server ask and nobody has answered."""
        return self._routes.asks()

    def engines(self) -> list[Message]:
        """The agents of the server."""
        return self._routes.engines()

    def abort(self, session: str) -> bool:
        """Stop the run of a session; whether there was one."""
        return self._routes.abort(session)

    def settle(
        self,
        ask: AskOpenedEvent | str,
        decision: Decision,
        *,
        message: str | None = None,
        input: dict[str, Any] | None = None,
    ) -> None:
        """Answer what an agent asks: an `ask.opened` event, or the id of an ask."""
        self._routes.settle(settle_fields(ask, decision, message, input))

    async def __aenter__(self) -> AsyncClient:
        return AsyncClient(self._routes)

    async def __aexit__(self, *_: object) -> None:
        pass


class AsyncClient:
    """A server, for `async with linkspan.Client(…) as client`."""

    def __init__(self, routes: _Routes) -> None:
        self._routes = routes

    def run(
        self,
        prompt: str,
        *,
        session: str | None = None,
        fork: str | None = None,
        **options: Unpack[RunOptions],
    ) -> AsyncRun:
        """Give an agent of the server a prompt, and iterate over what it does.

        The run is aborted when the loop is left early.
        """
        made = self._routes.conversation(session, fork, options)
        conversation = AsyncConversation(made._open_link, made._turns)
        return AsyncRun(lambda: conversation._start(prompt), conversation.aclose)

    def conversation(
        self,
        *,
        session: str | None = None,
        fork: str | None = None,
        **options: Unpack[RunOptions],
    ) -> Conversation:
        """A session of an agent of the server, for `async with`."""
        return self._routes.conversation(session, fork, options)

    async def events(self, session: str, *, since: int = 0) -> AsyncIterator[Event]:
        """Iterate over the events of a session, those that are to come included.

        `since` is the number of the last event that is known already. It goes on for ever; leaving
        the loop changes nothing for the session.
        """
        inbox: Inbox[Message] = Inbox()
        with closing(Follower(self._routes.server, session, since, inbox)):
            while True:
                yield cast(Event, await inbox.atake())

    async def sessions(
        self, *, limit: int = 50, engine: str | None = None, text: str | None = None
    ) -> list[Message]:
        """The sessions of the server, the newest first."""
        return await asyncio.to_thread(self._routes.sessions, limit, engine, text)

    async def session(self, session: str) -> Message:
        """One session, with its runs, its asks and its queue."""
        return await asyncio.to_thread(self._routes.session, session)

    async def asks(self) -> list[Message]:
        """What agents of the server ask and nobody has answered."""
        return await asyncio.to_thread(self._routes.asks)

    async def engines(self) -> list[Message]:
        """The agents of the server."""
        return await asyncio.to_thread(self._routes.engines)

    async def abort(self, session: str) -> bool:
        """Stop the run of a session; whether there was one."""
        return await asyncio.to_thread(self._routes.abort, session)

    async def settle(
        self,
        ask: AskOpenedEvent | str,
        decision: Decision,
        *,
        message: str | None = None,
        input: dict[str, Any] | None = None,
    ) -> None:
        """Answer what an agent asks: an `ask.opened` event, or the id of an ask."""
        fields = settle_fields(ask, decision, message, input)
        await asyncio.to_thread(self._routes.settle, fields)
