"""A server as a link: its routes under the names of the controls, and its events over SSE.

Only the standard library is used. A stream that breaks off is opened again after the last event
that came, so nothing is missed and nothing comes twice.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from ._errors import LinkspanError
from ._inbox import Inbox
from ._link import Message

# The server writes something at least every 20 s.
_SECONDS_OF_SILENCE = 60.0
_SECONDS_TO_ANSWER = 15.0
_SHORTEST_PAUSE = 0.25
_LONGEST_PAUSE = 10.0

# Trying again does not help against these.
_FINAL_STATUS = {400, 401, 403, 404, 421}


class Server:
    """Where a server is, and how to speak with it."""

    def __init__(self, url: str, token: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise LinkspanError("bad_url", f"`{url}` is not an address such as http://host:8787")
        self._host = parts.hostname
        self._port = parts.port
        self._is_encrypted = parts.scheme == "https"
        self._prefix = parts.path.rstrip("/")
        self._token = token or os.environ.get("LINKSPAN_TOKEN")

    def call(self, method: str, path: str, body: Message | None = None) -> Any:
        """Make one request, and return what it is answered with."""
        connection = self._connection(_SECONDS_TO_ANSWER)
        try:
            response = self._open(connection, method, path, body)
            return json.loads(response.read() or b"null")
        finally:
            connection.close()

    def follow(
        self, path: str, after: int, connected: Callable[[socket.socket], bool]
    ) -> Iterator[Message]:
        """Iterate over the events of a stream until it breaks off.

        `connected` is given the socket, and says whether to go on.
        """
        connection = self._connection(_SECONDS_OF_SILENCE)
        try:
            self._connect(connection)
            if not connected(connection.sock):
                return
            headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
            response = self._open(connection, "GET", path, None, headers)
            data: list[bytes] = []
            # Cut at `\n` alone; U+2028 and its kin may be in a text.
            for line in response:
                line = line.rstrip(b"\r\n")
                if line.startswith(b"data:"):
                    data.append(line[5:].removeprefix(b" "))
                elif not line and data:
                    message = json.loads(b"\n".join(data))
                    # The stream also reports its position, which is not an event.
                    if "seq" in message:
                        yield message
                    data = []
        finally:
            connection.close()

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._is_encrypted else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=timeout)

    def _open(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Message | None,
        headers: dict[str, str] | None = None,
    ) -> http.client.HTTPResponse:
        sent = {"Accept": "application/json", **(headers or {})}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            sent["Content-Type"] = "application/json"
        content = None if body is None else json.dumps(body)
        try:
            connection.request(method, self._prefix + path, content, sent)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as err:
            raise self._unreachable(connection, err) from err
        if response.status >= 400:
            raise _refused(response)
        return response

    def _connect(self, connection: http.client.HTTPConnection) -> None:
        try:
            connection.connect()
        except OSError as err:
            raise self._unreachable(connection, err) from err

    def _unreachable(self, connection: http.client.HTTPConnection, err: Exception) -> LinkspanError:
        where = f"{self._host}:{connection.port}"
        hint = "start one with `linkspan serve`, or correct the address"
        return LinkspanError("connection", f"no server answers at {where}: {err}", hint)


class HttpLink:
    """One session of a server."""

    def __init__(self, server: Server) -> None:
        self.inbox: Inbox[Message] = Inbox()
        self._server = server
        self._follower: Follower | None = None

    def send(self, control: str, **fields: Any) -> Future[Message]:
        """Send a control. The answer is waited for, since it is one request."""
        reply: Future[Message] = Future()
        try:
            reply.set_result(self.request(control, **fields))
        except LinkspanError as err:
            reply.set_exception(err)
        return reply

    def request(self, control: str, **fields: Any) -> Message:
        """Send a control and wait for its reply."""
        body = {key: value for key, value in fields.items() if value is not None}
        if control == "run.submit":
            return self._submit(body)
        if control == "run.abort":
            session = quote(body["sessionId"], safe="")
            return dict(self._server.call("POST", f"/api/sessions/{session}/abort", {}))
        assert control == "ask.settle", control
        ask = quote(body.pop("askId"), safe="")
        return dict(self._server.call("POST", f"/api/asks/{ask}", body))

    async def arequest(self, control: str, **fields: Any) -> Message:
        """Send a control and wait for its reply, without blocking the event loop."""
        return await asyncio.to_thread(self.request, control, **fields)

    def release(self) -> None:
        """Stop following."""
        if self._follower is not None:
            self._follower.stop()

    def close(self) -> None:
        """Stop following, and wait for the reader. May be called again."""
        if self._follower is not None:
            self._follower.close()

    async def aclose(self) -> None:
        """`close`, without blocking the event loop."""
        await asyncio.to_thread(self.close)

    def _submit(self, body: Message) -> Message:
        wanted = body.pop("resumeId", "new")
        after = 0
        if wanted != "new":
            try:
                known = self._server.call("GET", f"/api/sessions/{quote(wanted, safe='')}")
                body["session"], after = known["id"], known["head"]
            except LinkspanError as err:
                if err.code != "no_such_session":
                    raise
                # A session of the agent that this server has not seen yet.
                body["resume"] = wanted
        session = str(self._server.call("POST", "/api/runs", body)["session"])
        if "fork" in body:
            made = self._server.call("GET", f"/api/sessions/{session}")
            after = (made["parent"] or {"seq": 0})["seq"]
        if self._follower is None:
            self._follower = Follower(self._server, session, after, self.inbox)
        return {"sessionId": session, "cursor": after}


class Follower:
    """A thread that puts the events of a session into an inbox."""

    def __init__(self, server: Server, session: str, after: int, inbox: Inbox[Message]) -> None:
        self._server = server
        query = urlencode({"format": "linkspan"})
        self._path = f"/api/sessions/{quote(session, safe='')}/events?{query}"
        self._after = after
        self._inbox = inbox
        self._stopped = threading.Event()
        self._socket: socket.socket | None = None
        # A daemon: the interpreter must not wait for a server.
        self._thread = threading.Thread(target=self._follow, name="linkspan", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the thread end."""
        self._stopped.set()
        if self._socket is not None:
            try:
                # Only this wakes a thread that waits for the next byte.
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                # The server was faster.
                pass

    def close(self) -> None:
        """Wait for the end of the thread."""
        self.stop()
        self._thread.join()

    def _follow(self) -> None:
        pause = _SHORTEST_PAUSE
        while not self._stopped.is_set():
            try:
                for event in self._server.follow(self._path, self._after, self._connected):
                    self._after = event["seq"]
                    self._inbox.put(event)
                    pause = _SHORTEST_PAUSE
            except LinkspanError as err:
                if err.status in _FINAL_STATUS:
                    self._inbox.end(err)
                    return
            except (OSError, ValueError, http.client.HTTPException):
                # Broken off, perhaps in the middle of an event, which comes again.
                pass
            # Many clients that were cut off together do not come back together.
            self._stopped.wait(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, _LONGEST_PAUSE)
        self._inbox.end(LinkspanError("closed", "the stream was closed"))

    def _connected(self, socket: socket.socket) -> bool:
        # Stored before the check, so that a concurrent `stop` finds the socket.
        self._socket = socket
        return not self._stopped.is_set()


def _refused(response: http.client.HTTPResponse) -> LinkspanError:
    try:
        error = json.loads(response.read())["error"]
        made = LinkspanError(error["code"], error["message"], error.get("hint"))
    except (ValueError, KeyError, TypeError):
        made = LinkspanError("refused", f"the server answered {response.status} {response.reason}")
    made.status = response.status
    return made
