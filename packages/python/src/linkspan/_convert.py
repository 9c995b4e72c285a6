"""Recordings and stored sessions, in any format."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from typing import cast

from ._binary import binary_path
from ._errors import LinkspanError
from ._options import Path
from .types import Event

# The program's own words for its exit codes.
_CODES = {2: "bad_usage", 3: "io"}


def convert(
    path: Path, *, to: str, source: str | None = None, profile: str | None = None
) -> Iterator[str]:
    """Convert a recording, and iterate over the lines of the result.

    `to` is a format that linkspan writes, `source` the format of the recording, which is detected
    if not given, and `profile` a variant of `to`; see `linkspan formats`.
    """
    arguments = ["convert", "--to", to]
    if source is not None:
        arguments += ["--from", source]
    if profile is not None:
        arguments += ["--profile", profile]
    return _lines([*arguments, "--", os.fspath(path)])


def events(what: Path, *, since: int = 0, data_dir: Path | None = None) -> Iterator[Event]:
    """Iterate over the canonical events of a recording or of a stored session.

    `what` is a file, or the id of a session: linkspan's or the agent's own. `since` is a cursor:
    the number of the last event that is known already. `data_dir` is where sessions are kept, if
    not where the user's are.
    """
    if os.path.exists(what):
        lines = convert(what, to="linkspan")
    else:
        # Not behind a `--`: that is for the arguments of a fake agent.
        arguments = ["replay", os.fspath(what), "--to", "linkspan"]
        if data_dir is not None:
            arguments += ["--data-dir", os.fspath(data_dir)]
        lines = _lines(arguments)
    for line in lines:
        event = cast(Event, json.loads(line))
        if event["seq"] > since:
            yield event


def _lines(arguments: Sequence[str]) -> Iterator[str]:
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [binary_path(), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        assert process.stdout is not None
        with process:
            try:
                # A file of bytes is cut at `\n` alone; U+2028 and its kin may be in a text.
                for line in process.stdout:
                    yield line.decode().removesuffix("\n")
            except GeneratorExit:
                process.kill()
                raise
        if process.returncode:
            errors.seek(0)
            raise _error(process.returncode, errors.read().decode(errors="replace"))


def _error(status: int, said: str) -> LinkspanError:
    """The program's error, which is a sentence and perhaps a hint."""
    message, _, hint = said.strip().removeprefix("linkspan: ").partition("\n\nhint: ")
    message = message or f"linkspan ended with exit status {status}"
    return LinkspanError(_CODES.get(status, "failed"), message, hint or None)
