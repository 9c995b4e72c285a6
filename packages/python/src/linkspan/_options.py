"""What a run is started with, for every way to start one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, TypedDict, Union

Permissions = Literal["plan", "deny", "ask", "accept-edits", "listed", "allow"]
"""What an agent may do without asking; `docs/engines.md` describes the modes."""

Decision = Literal["allow", "allow_always", "deny"]
"""An answer to what an agent asks."""

Path = Union[str, "os.PathLike[str]"]


class RunOptions(TypedDict, total=False):
    """The options of a run. Every one may be left out; the config of linkspan decides then."""

    engine: str | None
    """The agent, such as `claude`, `codex` or `replay:tools`; see `linkspan engines`."""
    cwd: Path | None
    """Where the agent works; the current directory, or that of the session, if not given."""
    model: str | None
    """The model, by the agent's own name for it."""
    effort: str | None
    """The reasoning effort, in the agent's own terms."""
    permissions: Permissions | None
    """What the agent may do without asking."""
    allowed_tools: Sequence[str] | None
    """The tools that may run without a question, all of them: an empty list allows nothing."""
    denied_tools: Sequence[str] | None
    """Tools that may not run at all."""
    speed: float | None
    """Of a recording: 2 is twice as fast. It is played at once if not given."""


def fields(prompt: str, options: RunOptions) -> dict[str, Any]:
    """The fields of a prompt, as `run.submit` and `POST /api/runs` have them."""
    allowed, denied = options.get("allowed_tools"), options.get("denied_tools")
    cwd = options.get("cwd")
    return {
        "prompt": prompt,
        "engine": options.get("engine"),
        "cwd": None if cwd is None else os.fspath(cwd),
        "model": options.get("model"),
        "effort": options.get("effort"),
        "permissions": options.get("permissions"),
        "allow": None if allowed is None else list(allowed),
        "deny": None if denied is None else list(denied),
        "speed": options.get("speed"),
    }
