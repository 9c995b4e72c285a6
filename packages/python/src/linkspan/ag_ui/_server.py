"""The private `linkspan serve` of this process, which all its agents share.

It is started with the first request, off the event loop, and again when it has died. Its stdin is
a pipe from this process, so it ends with it, however that ends. Agents of models are in a config of
their own, without their keys; agents of engines are run with the user's config.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import secrets
import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from .._binary import binary_path
from .._errors import LinkspanError
from ._http import Address

# Seconds until a server that was started must listen.
_PATIENCE = 60.0

# Bytes of a Unix socket's path, on the strictest of systems.
_MAX_PATH = 100

_HAS_UNIX = hasattr(asyncio, "open_unix_connection")


@dataclass(frozen=True)
class Model:
    """A model behind an endpoint: a table `[engines.responses.NAME]` and its key."""

    name: str
    table: dict[str, Any]
    key: str | None = field(default=None, repr=False)

    def lines(self) -> list[str]:
        """Return the table in TOML."""
        head = f"[engines.responses.{_quoted(self.name)}]"
        key = {"api_key_env": self._variable()} if self.key else {}
        return [head, *(f"{it} = {_toml(value)}" for it, value in {**self.table, **key}.items())]

    def variable(self) -> dict[str, str]:
        """Return the environment variable that the server gets the key in."""
        return {self._variable(): self.key} if self.key else {}

    def _variable(self) -> str:
        return f"LINKSPAN_KEY_{self.name.encode().hex().upper()}"


@dataclass(frozen=True)
class Place:
    """What servers differ in: agents that agree in it share one."""

    data_dir: str | None
    config: str | None
    # Whether its agents are models, which have a config of their own.
    has_models: bool


class Process:
    """A server at work."""

    def __init__(self, place: Place, models: tuple[Model, ...]) -> None:
        self.models = models
        self.n_requests = 0
        args = [binary_path(), "serve", "--until-stdin-closes", "--ready-json"]
        env = {**os.environ, "LINKSPAN_LOG_LEVEL": "warn"}
        for model in models:
            env.update(model.variable())
        if _HAS_UNIX:
            self.address = Address(path=_socket_path())
            args += ["--listen", f"unix:{self.address.path}"]
        else:
            env["LINKSPAN_TOKEN"] = secrets.token_urlsafe(32)
            args += ["--listen", "127.0.0.1:0"]
        if place.data_dir is not None:
            args += ["--data-dir", place.data_dir]
        own = _config_of(models) if place.has_models else contextlib.nullcontext(place.config)
        with own as config:
            if config is not None:
                args += ["--config", config]
            self._child = subprocess.Popen(
                args,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Ctrl-C is for the app, which decides what becomes of its requests.
                start_new_session=True,
            )
            listen = self._ready()
        if not _HAS_UNIX:
            port = int(listen.rpartition(":")[2])
            self.address = Address(port=port, token=env["LINKSPAN_TOKEN"])

    def _ready(self) -> str:
        """Wait for the line that says where it listens."""
        assert self._child.stdout is not None
        late = threading.Timer(_PATIENCE, self._child.kill)
        late.start()
        try:
            line = self._child.stdout.readline()
        finally:
            late.cancel()
            late.join()
        if not line:
            code = self._child.wait()
            raise LinkspanError(
                "program_ended",
                f"`linkspan serve` ended with exit code {code} before it listened",
                "its error is on stderr",
            )
        return str(json.loads(line)["listen"])

    @property
    def pid(self) -> int:
        return self._child.pid

    def is_alive(self) -> bool:
        return self._child.poll() is None

    def close(self) -> None:
        """Let it end: its runs are aborted, and it leaves."""
        for pipe in (self._child.stdin, self._child.stdout):
            assert pipe is not None
            pipe.close()

    def close_and_wait(self) -> None:
        self.close()
        self._child.wait()


class Server:
    """The server of one place, whichever process it is by now."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._models: dict[str, Model] = {}
        self._current: Future[Process] | None = None

    def add(self, model: Model) -> None:
        """Take in an agent; the next request is for a process that knows it."""
        with self._lock:
            known = self._models.setdefault(model.name, model)
        if known != model:
            raise ValueError(
                f"two agents are called `{model.name}`, with other settings each; "
                "give one of them another `name`"
            )

    async def process(self) -> Process:
        """Return the process, started first if there is none; `release` it when done."""
        while True:
            with self._lock:
                current = self._usable()
                if current is None:
                    current = self._current = self._start()
            process = await asyncio.wrap_future(current)
            with self._lock:
                # It may have been replaced meanwhile, or an agent may have come.
                if self._current is current and process.models == tuple(self._models.values()):
                    process.n_requests += 1
                    return process

    def release(self, process: Process) -> None:
        """End a request; the last one of a process that was replaced ends it, too."""
        with self._lock:
            process.n_requests -= 1
            is_current = self._current is not None and _result(self._current) is process
            is_left = process.n_requests == 0 and not is_current
        if is_left:
            _background(process.close_and_wait)

    def forget(self, process: Process) -> None:
        """Treat a process that does not answer as dead."""
        with self._lock:
            if self._current is not None and _result(self._current) is process:
                self._current = None
        _background(process.close_and_wait)

    def close(self) -> Process | None:
        """Let the process end, if there is one, and return it."""
        with self._lock:
            current, self._current = self._current, None
        process = _result(current) if current is not None else None
        if process is not None:
            process.close()
        return process

    def _usable(self) -> Future[Process] | None:
        """Return what is there, unless it has died or does not know all agents."""
        current = self._current
        if current is None or not current.done():
            return current
        process = _result(current)
        if process is None:
            return None
        if not process.is_alive():
            process.close()
            return None
        if process.models == tuple(self._models.values()):
            return current
        if process.n_requests == 0:
            _background(process.close_and_wait)
        return None

    def _start(self) -> Future[Process]:
        models = tuple(self._models.values())
        started: Future[Process] = Future()
        # A request that is cancelled must not cancel the start that others wait for.
        started.set_running_or_notify_cancel()

        def start() -> None:
            try:
                started.set_result(Process(self._place, models))
            # The waiting callers get it.
            except BaseException as err:  # noqa: BLE001
                started.set_exception(err)

        _background(start)
        return started


_SERVERS: dict[Place, Server] = {}


def server_of(place: Place) -> Server:
    """Return the one server of a place."""
    return _SERVERS.setdefault(place, Server(place))


def close_all() -> None:
    """End the servers of this process and wait for them, as at the end of an app's lifespan.

    Without it they end with the process. A later request starts another.
    """
    for process in [it for it in map(Server.close, list(_SERVERS.values())) if it]:
        process.close_and_wait()


@atexit.register
def _close_at_exit() -> None:
    # Do not wait: a server needs time to abort its runs, but it does not need its parent.
    for server in list(_SERVERS.values()):
        server.close()


def _after_fork() -> None:
    # The server of the parent is the parent's: a worker that was forked has one of its own. A lock
    # may have been held by a thread that is not here.
    for server in _SERVERS.values():
        server.__dict__.update(_lock=threading.Lock(), _current=None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _background(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="linkspan", daemon=True).start()


def _result(future: Future[Process]) -> Process | None:
    if not future.done() or future.exception() is not None:
        return None
    return future.result()


def _socket_path() -> str:
    name = f"linkspan-{secrets.token_hex(12)}.sock"
    path = str(Path(tempfile.gettempdir(), name))
    # A long TMPDIR is fine for files, and too long for the name of a socket.
    return path if len(os.fsencode(path)) <= _MAX_PATH else f"/tmp/{name}"


@contextlib.contextmanager
def _config_of(models: tuple[Model, ...]) -> Generator[str]:
    """Keep a config file for as long as a server starts: it may hold headers that are secrets."""
    descriptor, path = tempfile.mkstemp(prefix="linkspan-", suffix=".toml")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for model in models for line in model.lines())
        yield path
    finally:
        os.unlink(path)


def _quoted(text: str) -> str:
    # JSON's escapes are TOML's, but for what lies outside of the first plane, and DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            return _quoted(value)
        case dict():
            table = cast("dict[str, Any]", value)
            pairs = (f"{_quoted(key)} = {_toml(it)}" for key, it in table.items())
            return f"{{ {', '.join(pairs)} }}"
        case _:
            raise TypeError(f"{value!r} is no value of linkspan's config")
