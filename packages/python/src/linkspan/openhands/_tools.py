"""Tools, by OpenHands' names and by the agent's own, and what a call of any of them looks like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openhands.sdk import Tool
from openhands.sdk.tool.schema import Action, Observation

# OpenHands' tools that Claude Code has an equal of.
_CLAUDE_TOOLS = {
    "terminal": ["Bash"],
    "file_editor": ["Read", "Edit", "Write"],
    "grep": ["Grep"],
    "glob": ["Glob"],
    "browser": ["WebFetch"],
}


class ExternalToolAction(Action):
    """A call of a tool that somebody else runs; events of the profile `external` have it."""

    tool: str
    args: dict[str, Any]


class ExternalToolObservation(Observation):
    """The result of such a call. Its text is also in `content`, where OpenHands looks for it."""

    tool: str
    result: str | list[dict[str, Any]] | None = None


def register_native_tools() -> None:
    """Import the classes of the profile `native`: the SDK only reads events whose classes it knows."""
    try:
        from openhands.tools import file_editor, glob, grep, task_tracker, terminal  # noqa: F401
    except ModuleNotFoundError as err:
        raise ValueError(
            "the profile `native` is made of OpenHands' own tools, which are not installed: "
            "`pip install openhands-tools`"
        ) from err


def agent_tools(engine: str, tools: Sequence[Tool]) -> list[str]:
    """The agent's own names of these tools; `ValueError` names the one that it has no equal of."""
    names: list[str] = []
    for tool in tools:
        found = _CLAUDE_TOOLS.get(_plain_name(tool.name)) if engine == "claude" else None
        if found is None:
            raise ValueError(
                f"`{tool.name}` of `tools` means nothing to the engine `{engine}`, which brings "
                "its own tools; name those that it may use in `allowed_tools`"
            )
        names += [it for it in found if it not in names]
    return names


def _plain_name(name: str) -> str:
    """`TerminalTool` and `terminal` are one tool, and so are all that drive a browser."""
    plain = name.removesuffix("Tool")
    plain = "".join(f"_{it.lower()}" if it.isupper() else it for it in plain).lstrip("_")
    return "browser" if plain.startswith("browser") else plain
