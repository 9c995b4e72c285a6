"""What goes wrong: every failure of linkspan is a `LinkspanError`, with a code for programs."""

from __future__ import annotations


class LinkspanError(Exception):
    """A request that linkspan refused or could not carry out.

    `code` is a word for programs, `message` a sentence for people, and `hint` the way out, if
    there is one. `docs/errors.md` lists the codes of the program; this package adds its own:
    `no_program`, `program_ended`, `protocol`, `closed` and `connection`.
    """

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
