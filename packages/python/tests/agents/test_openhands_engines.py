"""Other engines as agents of the OpenHands SDK: the real programs, on the scripted model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents_model import Model, text
from scripted_engines import furnish
from test_openhands import conversation, kinds, said

import linkspan
import linkspan.openhands as ours

COMMAND = "echo yes > written"

SHELLS = {
    "codex": {"tool": "exec_command", "input": {"cmd": COMMAND}},
    "opencode": {"tool": "bash", "input": {"command": COMMAND, "description": "write"}},
    "gemini": {"tool": "run_shell_command", "input": {"command": COMMAND, "description": "write"}},
}


@pytest.mark.parametrize("engine", list(SHELLS))
def test_a_tool_call_and_an_answer(
    engine: str,
    model: Callable[..., Model],
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shell: dict[str, Any] = {"blocks": [SHELLS[engine]]}
    played = model(main=[shell, text("Written.")])
    for name, value in furnish(home, played.url, [engine]).items():
        monkeypatch.setenv(name, value)
    work = tmp_path / "work"
    talk = conversation(work, ours.LinkspanAgent(engine=engine, permissions="allow"))
    talk.send_message("Write it.")
    talk.run()
    assert kinds(talk.state.events) == [
        "SystemPromptEvent agent",
        "MessageEvent user",
        "ActionEvent agent",
        "ObservationEvent environment",
        "MessageEvent agent",
    ]
    assert (work / "written").read_text() == "yes\n"
    assert said(talk.state.events[-1]) == "Written."
    # Each counts in its own way; these are the figures of the run as linkspan has them.
    session = talk.state.agent_state["linkspan"]["session"]
    (end,) = (it["data"] for it in linkspan.events(session) if it["type"] == "run.ended")
    assert "usage" in end
    tokens = end["usage"]["tokens"]
    usage = talk.conversation_stats.get_combined_metrics().accumulated_token_usage
    assert (usage.prompt_tokens, usage.cache_read_tokens, usage.completion_tokens) == (
        tokens["input"],
        tokens["cache_read"],
        tokens.get("output"),
    )
    assert usage.prompt_tokens > 0
