"""What answers the routes: bodies and streams go through as they are.

Starlette is imported here and not in the functions, because FastAPI finds the types of a handler's
arguments among the names of its module.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from .._errors import LinkspanError
from ._agents import Agent, Reply

Handler = Callable[[Request], Awaitable[Response]]

# Of the client's request, and of the server's answer.
_REQUEST_HEADERS = ("accept", "content-type", "last-event-id")
_RESPONSE_HEADERS = ("content-type", "cache-control", "x-accel-buffering", "retry-after")


def run(agent: Agent) -> Handler:
    """Return what answers `POST path`."""

    async def run_agent(request: Request) -> Response:
        try:
            return Stream(await agent.forward(await request.body(), _headers(request)))
        except LinkspanError as err:
            return _unavailable(err)

    return run_agent


def call(agent: Agent, path: str) -> Handler:
    """Return what answers a route beside it."""

    async def call_agent(request: Request) -> Response:
        target = agent.path + path
        try:
            return Stream(
                await agent.send(request.method, target, _headers(request), await request.body())
            )
        except LinkspanError as err:
            return _unavailable(err)

    return call_agent


class Stream(Response):
    """The reply, piece by piece, for as long as the client is there."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.status_code = reply.status
        self.background = None
        self.body = b""
        found = ((it, reply.headers.get(it)) for it in _RESPONSE_HEADERS)
        self.raw_headers = [(it.encode(), value.encode("latin-1")) for it, value in found if value]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # `receive` reports that a client has disconnected, while a run may be silent for long.
        tasks = [asyncio.ensure_future(self._pump(send)), asyncio.ensure_future(_gone(receive))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._reply.close()

    async def _pump(self, send: Send) -> None:
        head = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **head})
        async for piece in self._reply.pieces():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _headers(request: Request) -> dict[str, str]:
    return {it: request.headers[it] for it in _REQUEST_HEADERS if it in request.headers}


def _unavailable(err: LinkspanError) -> Response:
    """Answer for a server that could not be started, in the words that it has for errors."""
    error = {"code": err.code, "message": err.message, "hint": err.hint}
    return JSONResponse({"error": error}, status_code=502)
