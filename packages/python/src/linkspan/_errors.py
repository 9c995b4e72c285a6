"""What goes wrong: every failure of linkspan is a `LinkspanError`, with a code for programs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

# What a module needs besides this package, by the extra that brings it.
_NEEDED = {
    "openhands": ("linkspan.openhands", "openhands-sdk 1.58 or newer, and Python 3.12 or newer"),
    "ag-ui": ("linkspan.ag_ui", "ag-ui-protocol 1.0 or newer, and FastAPI"),
    "takopi": ("linkspan.takopi", "takopi 0.23 or newer, and Python 3.14 or newer"),
}


@contextmanager
def needs(extra: str) -> Generator[None, None, None]:
    """Say how to get what is imported here, where it is missing or too old."""
    try:
        yield
    except ImportError as err:
        module, needed = _NEEDED[extra]
        way_out = f"pip install 'linkspan[{extra}]'"
        raise ImportError(f"`{module}` needs {needed}: `{way_out}` ({err})") from err


class LinkspanError(Exception):
    """A request that linkspan refused or could not carry out.

    `code` is a word for programs, `message` a sentence for people, and `hint` the way out, if
    there is one. `docs/errors.md` lists the codes of the program; this package adds its own:
    `no_program`, `program_ended`, `protocol`, `closed` and `connection`.
    """

    status: int | None = None
    """The HTTP status, where a server has refused something."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(code, message, hint)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class RunFailed(LinkspanError):
    """A run of an agent that did not complete, where the caller asked for its answer.

    `outcome` is how it ended (`failed`, `aborted`, `refused`, `limit`, `lost`), and `stderr` the
    last lines that the agent wrote there.
    """

    def __init__(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        *,
        outcome: str = "failed",
        stderr: str = "",
    ) -> None:
        super().__init__(code, message, hint)
        self.outcome = outcome
        self.stderr = stderr

    def __str__(self) -> str:
        said = super().__str__()
        return f"{said}\n{self.stderr}" if self.stderr else said
