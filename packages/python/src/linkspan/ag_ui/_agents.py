"""The agents: a model behind an OpenResponses endpoint, or any engine of linkspan."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlencode

from .._errors import LinkspanError, needs
from ._http import Response, send
from ._server import Model, Place, Process, Server, server_of

if TYPE_CHECKING:
    from ag_ui.core import Event, RunAgentInput

OnDisconnect = Literal["abort", "detach"]


class Agent:
    """Answers AG-UI requests through this process's server; not made by itself.

    `on_disconnect` is what becomes of a run whose client goes: `abort` ends it, with `detach` it
    goes on, and a client with the same run id gets all of it.
    """

    def __init__(
        self, engine: str, server: Server, settings: Mapping[str, Any], on_disconnect: OnDisconnect
    ) -> None:
        self.engine = engine
        self._server = server
        self._path = f"/ag-ui/{quote(engine, safe=':')}"
        self._query = urlencode({"on_disconnect": on_disconnect})
        # In place of what a client says of how an engine is run: the app decides that.
        self._settings = {"linkspan-settings": json.dumps(settings)}

    async def run(self, input: RunAgentInput) -> AsyncIterator[Event]:
        """Run one request and yield its events, each checked by the types of `ag_ui.core`.

        A request that is refused raises `LinkspanError`. Whatever goes wrong later is the
        `RUN_ERROR` that the stream ends with.
        """
        with needs("ag-ui"):
            from ag_ui.core import Event
            from pydantic import TypeAdapter

        events: TypeAdapter[Event] = TypeAdapter(Event)
        body = input.model_dump_json(by_alias=True, exclude_none=True).encode()
        reply = await self.forward(body, {"accept": "text/event-stream"})
        try:
            if reply.status != 200:
                raise _refusal(reply.status, await reply.body())
            rest = b""
            async for piece in reply.pieces():
                # On the empty line alone: a text may hold every other separator of lines.
                *frames, rest = (rest + piece).split(b"\n\n")
                for frame in frames:
                    if data := _data(frame):
                        yield events.validate_json(data)
        finally:
            reply.close()

    async def abort(self, thread_id: str) -> bool:
        """End the run of a thread; tells whether there was one."""
        body = json.dumps({"threadId": thread_id}).encode()
        return bool((await self._call("POST", "/abort", body))["aborted"])

    async def capabilities(self) -> dict[str, Any]:
        """Return what the engine can do, as AG-UI's `AgentCapabilities`."""
        return await self._call("GET", "/capabilities", b"")

    async def forward(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Send the body of a request as it is, and return the answer while it arrives."""
        target = f"{self._path}?{self._query}"
        return await self.send("POST", target, {**headers, **self._settings}, body)

    async def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Reply:
        """Send any request to the server."""
        is_sent_again = False
        while True:
            process = await self._server.process()
            try:
                response = await send(process.address, method, target, headers, body)
                return Reply(response, self._server, process)
            except BaseException as err:
                self._server.release(process)
                # One that was killed refuses connections before the system says that it is dead;
                # nothing of the request has been seen by anybody.
                if isinstance(err, (ConnectionRefusedError, FileNotFoundError)):
                    self._server.forget(process)
                    continue
                # It may have begun with the request: a run is known by its id, and not begun twice.
                if isinstance(err, (ConnectionError, asyncio.IncompleteReadError)):
                    self._server.forget(process)
                    if is_sent_again:
                        raise LinkspanError(
                            "connection", "the server of linkspan ended before it answered"
                        ) from err
                    is_sent_again = True
                    continue
                raise

    @property
    def path(self) -> str:
        """Where the server has this agent."""
        return self._path

    async def _call(self, method: str, path: str, body: bytes) -> dict[str, Any]:
        headers = {"content-type": "application/json"}
        reply = await self.send(method, self._path + path, headers, body)
        try:
            answer = await reply.body()
        finally:
            reply.close()
        if reply.status != 200:
            raise _refusal(reply.status, answer)
        result: dict[str, Any] = json.loads(answer)
        return result


class Reply:
    """An answer on its way; closing it ends the request, and with it a run that is to be aborted."""

    def __init__(self, response: Response, server: Server, process: Process) -> None:
        self._response = response
        self._server = server
        self._process: Process | None = process
        self.status = response.status
        self.headers = response.headers
        self.pieces = response.pieces
        self.body = response.body

    def close(self) -> None:
        self._response.close()
        process, self._process = self._process, None
        if process is not None:
            self._server.release(process)


class OpenResponsesAgent(Agent):
    """A model of any OpenResponses endpoint: OpenAI, Azure, Hugging Face, OpenClaw, and others.

    The keywords are the keys of `[engines.responses.NAME]` in linkspan's config (docs/config.md),
    and say the same; what is left out is decided there. `api_key` is handed to the server in an
    environment variable and is in no file. `name` tells the agents of a process apart, and under
    it and in `data_dir` their threads are found again.
    """

    def __init__(
        self,
        base_url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        name: str = "default",
        provider: str | None = None,
        headers: Mapping[str, str] | None = None,
        stateful: bool | None = None,
        max_retries: int | None = None,
        connect_timeout: float | None = None,
        first_byte_timeout: float | None = None,
        idle_timeout: float | None = None,
        azure: Mapping[str, str] | None = None,
        openclaw: Mapping[str, str | bool] | None = None,
        profile: str | None = None,
        client_state: bool | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        on_disconnect: OnDisconnect = "abort",
    ) -> None:
        table = {
            "base_url": base_url,
            "model": model,
            "provider": provider,
            "headers": dict(headers) if headers else None,
            "stateful": stateful,
            "max_retries": max_retries,
            "connect_timeout": connect_timeout,
            "first_byte_timeout": first_byte_timeout,
            "idle_timeout": idle_timeout,
            "azure": dict(azure) if azure else None,
            "openclaw": dict(openclaw) if openclaw else None,
            "profile": profile,
            "client_state": client_state,
        }
        given = {key: value for key, value in table.items() if value is not None}
        server = server_of(Place(_folder(data_dir), config=None, has_models=True))
        server.add(Model(name, given, api_key))
        super().__init__(f"responses:{name}", server, {}, on_disconnect)


class LinkspanAgent(Agent):
    """A coding agent, or any other engine of `linkspan engines`, run with the user's config.

    The keywords are the options of a run (docs/engines.md). They hold for every request: what a
    client says of its own in `forwardedProps.linkspan` is left out, and told so in a notice.
    """

    def __init__(
        self,
        engine: str,
        *,
        cwd: str | os.PathLike[str] | None = None,
        model: str | None = None,
        effort: str | None = None,
        permissions: str | None = None,
        allowed_tools: Sequence[str] | None = None,
        denied_tools: Sequence[str] = (),
        config: str | os.PathLike[str] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        on_disconnect: OnDisconnect = "abort",
    ) -> None:
        options = {
            "cwd": os.path.abspath(cwd) if cwd is not None else None,
            "model": model,
            "effort": effort,
            "permissions": permissions,
            "allow": list(allowed_tools) if allowed_tools is not None else None,
            "deny": list(denied_tools) or None,
        }
        given = {key: value for key, value in options.items() if value is not None}
        place = Place(_folder(data_dir), _folder(config), has_models=False)
        super().__init__(engine, server_of(place), given, on_disconnect)


def _folder(path: str | os.PathLike[str] | None) -> str | None:
    return os.path.abspath(path) if path is not None else None


def _data(frame: bytes) -> bytes:
    lines = (line[5:] for line in frame.split(b"\n") if line.startswith(b"data:"))
    return b"\n".join(lines).strip()


def _refusal(status: int, body: bytes) -> LinkspanError:
    try:
        error = json.loads(body)["error"]
        return LinkspanError(error["code"], error["message"], error.get("hint"))
    except (ValueError, KeyError, TypeError):
        return LinkspanError("protocol", f"the server of linkspan answered with status {status}")
