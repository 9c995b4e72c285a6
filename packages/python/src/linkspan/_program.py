"""One `linkspan stdio`: controls in, replies and messages out, one JSON object per line.

The child lives as long as its stdin is open, so it ends with this process however that ends. One
thread reads what it says and ends with it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import IO, Any

from ._binary import binary_path
from ._errors import LinkspanError
from ._inbox import Inbox
from ._link import Message

PROTOCOL = 1
"""The version of the vocabulary that this package speaks."""

# Agents get up to 20 s to end; a child that takes longer is stuck.
_SECONDS_TO_END = 30.0

# The last words of a program that has failed.
_TAIL_BYTES = 4096


class Program:
    """A running `linkspan stdio`."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self.inbox: Inbox[Message] = Inbox()
        self._pending: dict[int, Future[Message]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._end: LinkspanError | None = None
        program = binary_path()
        self._errors = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                [program, "stdio", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, **env} if env else None,
                # Ctrl-C is for Python, which decides what it means; the child would end at once.
                start_new_session=True,
            )
        except OSError as err:
            self._errors.close()
            raise LinkspanError("no_program", f"cannot start linkspan: {err}") from err
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin: IO[bytes] = self._process.stdin
        self._stdout: IO[bytes] = self._process.stdout
        # A daemon: the interpreter must not wait for a child that waits for the interpreter.
        self._reader = threading.Thread(target=self._read, name="linkspan", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id of the child."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it can be asked for something."""
        return self._end is None

    def send(self, control: str, **fields: Any) -> Future[Message]:
        """Send a control; the reply comes later. A field that is `None` is left out."""
        reply: Future[Message] = Future()
        number = next(self._numbers)
        request = {key: value for key, value in fields.items() if value is not None}
        line = json.dumps({"control": control, "requestId": number, **request}) + "\n"
        with self._lock:
            if self._end is not None:
                raise self._end
            self._pending[number] = reply
            try:
                self._stdin.write(line.encode())
                self._stdin.flush()
            except (OSError, ValueError):
                # It has exited. The reader finds out how, and notifies everyone who is waiting.
                pass
        return reply

    def request(self, control: str, **fields: Any) -> Message:
        """Send a control and wait for its reply."""
        return self.send(control, **fields).result()

    async def arequest(self, control: str, **fields: Any) -> Message:
        """Send a control and wait for its reply, without blocking the event loop."""
        return await asyncio.wrap_future(self.send(control, **fields))

    def release(self) -> None:
        """Let the child end, without waiting for it."""
        with self._lock:
            try:
                self._stdin.close()
            except OSError:
                # It has ended before it took everything.
                pass

    def close(self) -> None:
        """End the child, and wait until it and the reader are gone. May be called again."""
        self.release()
        self._reader.join(_SECONDS_TO_END)
        if self._reader.is_alive():
            self._process.kill()
            self._reader.join()

    async def aclose(self) -> None:
        """`close`, without blocking the event loop."""
        self.release()
        try:
            await asyncio.wait_for(self._drain(), _SECONDS_TO_END)
        except asyncio.TimeoutError:
            self._process.kill()
        self._reader.join()

    async def _drain(self) -> None:
        while True:
            try:
                await self.inbox.atake()
            except LinkspanError:
                return

    def _read(self) -> None:
        """The reader: dispatch the child's lines until its output ends."""
        error: LinkspanError | None = None
        try:
            # A file of bytes is cut at `\n` alone; U+2028 and its kin may be in a text.
            for number, line in enumerate(self._stdout):
                message = json.loads(line)
                if number == 0:
                    _check_ready(message)
                else:
                    self._deliver(message)
        except LinkspanError as err:
            error = err
        except ValueError as err:
            error = LinkspanError("protocol", f"linkspan wrote a line that is not JSON: {err}")
        finally:
            self._finish(error)

    def _deliver(self, message: Message) -> None:
        reply = self._pending.pop(message.get("requestId", 0), None)
        if reply is None:
            self.inbox.put(message)
        elif reply.set_running_or_notify_cancel():
            if message.get("type") == "bridge.error":
                reply.set_exception(
                    LinkspanError(message["code"], message["message"], message.get("hint"))
                )
            else:
                reply.set_result(message)

    def _finish(self, error: LinkspanError | None) -> None:
        was_closed = self._stdin.closed
        self.release()
        if error is not None:
            self._process.kill()
        status = self._process.wait()
        self._stdout.close()
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - _TAIL_BYTES))
        tail = self._errors.read().decode(errors="replace").strip()
        self._errors.close()
        if error is None and was_closed:
            error = LinkspanError("closed", "the conversation was closed")
        elif error is None:
            what = f"`linkspan stdio` ended by itself with exit status {status}"
            error = LinkspanError("program_ended", f"{what}: {tail}" if tail else what)
        with self._lock:
            self._end = error
            pending, self._pending = self._pending, {}
        for reply in pending.values():
            if reply.set_running_or_notify_cancel():
                reply.set_exception(error)
        self.inbox.end(error)


def _check_ready(message: Message) -> None:
    if message.get("type") != "bridge.ready":
        raise LinkspanError("protocol", f"linkspan did not begin with `bridge.ready`: {message}")
    if message.get("protocol") != PROTOCOL:
        raise LinkspanError(
            "protocol",
            f"linkspan {message.get('version')} speaks protocol {message.get('protocol')}, "
            f"this package speaks protocol {PROTOCOL}",
            "install the program and the package in the same version",
        )
