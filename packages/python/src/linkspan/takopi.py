"""Every engine of linkspan in takopi, which shows the runs of coding agents in a chat.

The entry points of the group `takopi.engine_backends` name the backends below, so they are there
once both packages are installed; nothing else imports this module. A run is one
`linkspan run --to takopi`, whose lines are takopi's own events: what they mean is decided there.
"""

from __future__ import annotations

import copy
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ._binary import binary_path
from ._errors import LinkspanError, needs

with needs("takopi"):
    import msgspec
    from takopi.api import (
        ActionEvent,
        CompletedEvent,
        ConfigError,
        EngineBackend,
        EngineConfig,
        JsonlSubprocessRunner,
        ResumeToken,
        Runner,
        StartedEvent,
        get_logger,
    )
    from takopi.model import TakopiEvent
    from takopi.runner import ResumeTokenMixin
    from takopi.runners.run_options import get_run_options

# What takopi calls this package's engines must not be a name that it or others use: two providers
# of one name are both dropped.
_ID = "linkspan"

_EVENTS: Mapping[str, type[StartedEvent | ActionEvent | CompletedEvent]] = {
    "started": StartedEvent,
    "action": ActionEvent,
    "completed": CompletedEvent,
}

# Lines of stderr that are kept to say why a run could not begin: the error and its hint.
_KEPT_LINES = 8


@dataclass(frozen=True)
class _Settings:
    """The table of an engine in takopi's config."""

    engine: str | None = None
    model: str | None = None
    permissions: str | None = None
    allowed_tools: tuple[str, ...] = ()
    denied_tools: tuple[str, ...] = ()
    program: str | None = None

    @classmethod
    def read(cls, backend: str, engine: str | None, config: EngineConfig, file: Path) -> _Settings:
        """Read the table `[backend]` of `file`; a key or a value it does not take is an error."""

        def refuse(key: str, reason: str) -> ConfigError:
            return ConfigError(f"`{backend}.{key}` in {file} {reason}")

        def text(key: str) -> str | None:
            value = config.get(key)
            if value is None or (isinstance(value, str) and value):
                return value
            raise refuse(key, f"takes a text, not {value!r}")

        def texts(key: str) -> tuple[str, ...]:
            value = config.get(key, [])
            items = cast("list[object]", value) if isinstance(value, list) else [None]
            found = tuple(it for it in items if isinstance(it, str))
            if len(found) < len(items):
                raise refuse(key, f"takes a list of texts, not {value!r}")
            return found

        known = [it for it in cls.__dataclass_fields__ if engine is None or it != "engine"]
        for key in config:
            if key == "engine" and engine is not None:
                reason = f"is not taken: the engine is {engine}; `[{_ID}]` takes one"
                raise refuse(key, reason)
            if key not in known:
                raise refuse(key, f"is not known; there are {', '.join(known)}")
        if config.get("allowed_tools") == []:
            raise refuse("allowed_tools", 'is empty; to allow nothing, set `permissions = "deny"`')
        return cls(
            engine=engine or text("engine"),
            model=text("model"),
            permissions=text("permissions"),
            allowed_tools=texts("allowed_tools"),
            denied_tools=texts("denied_tools"),
            program=text("program"),
        )


@dataclass
class _RunState:
    """What takopi counts its own notes with."""

    note_seq: int = 0


class LinkspanRunner(ResumeTokenMixin, JsonlSubprocessRunner):
    """Runs prompts of a chat with one engine, or with any."""

    def __init__(self, backend: str, engine: str | None, settings: _Settings) -> None:
        self.engine = backend
        self.fixed_engine = engine
        self.settings = settings
        words = ["linkspan", "run", *(["--engine", engine] if engine else []), "--resume"]
        self._resume_words = " ".join(words)
        spaced = r"\s+".join(re.escape(it) for it in words)
        line = rf"^\s*`?{spaced}\s+(?P<token>[^`\s]+)`?\s*$"
        self.resume_re = re.compile(line, re.IGNORECASE | re.MULTILINE)
        self.logger: Any = get_logger(__name__)
        self.stderr: deque[str] = deque(maxlen=_KEPT_LINES)

    def format_resume(self, token: ResumeToken) -> str:
        """Return the command that resumes the session, which works in a terminal too."""
        if token.engine != self.engine:
            raise RuntimeError(f"resume token is for engine {token.engine!r}")
        return f"`{self._resume_words} {token.value}`"

    def command(self) -> str:
        return binary_path()

    def build_args(self, prompt: str, resume: ResumeToken | None, *, state: Any) -> list[str]:
        settings = self.settings
        chosen = get_run_options()
        model = (chosen and chosen.model) or settings.model
        # Takopi has chosen the directory: the nearest git root is not looked for.
        args = ["run", "--to", "takopi", "--cwd", "."]
        # Without a fixed engine the session has one, which need not be the configured one.
        if settings.engine and (resume is None or self.fixed_engine):
            args += ["--engine", settings.engine]
        if resume is not None:
            args += ["--resume", resume.value]
        if model:
            args += ["--model", model]
        if chosen and chosen.reasoning:
            args += ["--effort", chosen.reasoning]
        if settings.permissions:
            args += ["--permissions", settings.permissions]
        args += [f"--allow={it}" for it in settings.allowed_tools]
        args += [f"--deny={it}" for it in settings.denied_tools]
        if settings.program:
            args += ["--program", settings.program]
        # The prompt is stdin: it may begin with a dash, and be longer than an argument.
        return [*args, "-"]

    def new_state(self, prompt: str, resume: ResumeToken | None) -> _RunState:
        return _RunState()

    async def run_impl(self, prompt: str, resume: ResumeToken | None) -> AsyncIterator[TakopiEvent]:
        # Takopi hands stderr to the logger of the runner and to nothing else, so a run that has one
        # of its own can say why it failed.
        run = copy.copy(self)
        run.stderr = deque(maxlen=_KEPT_LINES)
        run.logger = _StderrTap(self.logger, run.stderr)
        async for event in super(LinkspanRunner, run).run_impl(prompt, resume):
            yield event

    def translate(
        self,
        data: Any,
        *,
        state: Any,
        resume: ResumeToken | None,
        found_session: ResumeToken | None,
    ) -> list[TakopiEvent]:
        # For takopi the engine is the backend, by which it finds the runner of a session again.
        data["engine"] = self.engine
        if data.get("resume"):
            data["resume"]["engine"] = self.engine
        return [msgspec.convert(data, type=_EVENTS[data["type"]])]

    def process_error_events(
        self,
        rc: int,
        *,
        resume: ResumeToken | None,
        found_session: ResumeToken | None,
        state: Any,
    ) -> list[TakopiEvent]:
        """End a run that linkspan refused, in its own words."""
        said = "\n".join(it.removeprefix("linkspan: ") for it in self.stderr if it)
        error = said or f"linkspan ended with exit code {rc}"
        session = found_session or resume
        end = CompletedEvent(engine=self.engine, ok=False, answer="", resume=session, error=error)
        return [self.note_event(error, state=state), end]


class _StderrTap:
    """A logger that keeps what takopi logs of the program's stderr."""

    def __init__(self, logger: Any, lines: deque[str]) -> None:
        self._logger = logger
        self._lines = lines

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._logger, name)
        if name not in ("debug", "info"):
            return method

        def log(event: str, **fields: Any) -> Any:
            if event == "subprocess.stderr":
                self._lines.append(str(fields.get("line", "")).rstrip())
            return method(event, **fields)

        return log


def _build_runner(backend: str, engine: str | None) -> Callable[[EngineConfig, Path], Runner]:
    def build(config: EngineConfig, file: Path) -> Runner:
        return LinkspanRunner(backend, engine, _Settings.read(backend, engine, config, file))

    return build


def _program() -> str:
    """Return what takopi looks for to see whether a backend can be used."""
    try:
        return binary_path()
    except LinkspanError:
        return "linkspan"


def _backend(engine: str | None = None) -> EngineBackend:
    name = f"{_ID}_{engine}" if engine else _ID
    return EngineBackend(
        id=name,
        build_runner=_build_runner(name, engine),
        cli_cmd=_program(),
        install_cmd="pip install linkspan",
    )


BACKEND = _backend()
CLAUDE = _backend("claude")
CODEX = _backend("codex")
OPENCODE = _backend("opencode")
GEMINI = _backend("gemini")
OPENHANDS = _backend("openhands")
