"""Other engines as agents of the OpenHands SDK: the real programs, on the scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents_model import Model, text
from test_openhands import conversation, kinds, said

import linkspan
import linkspan.openhands as ours

COMMAND = "echo yes > written"

SHELLS = {
    "codex": {"tool": "exec_command", "input": {"cmd": COMMAND}},
    "opencode": {"tool": "bash", "input": {"command": COMMAND, "description": "write"}},
    "gemini": {"tool": "run_shell_command", "input": {"command": COMMAND, "description": "write"}},
}


def point_to(url: str, engine: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell an engine where its model is, in its own way."""
    rest = ""
    if engine == "codex":
        settings = [
            'model="gpt-5.5"',
            'model_provider="scripted"',
            'model_providers.scripted.name="scripted"',
            f'model_providers.scripted.base_url="{url}/v1"',
            'model_providers.scripted.env_key="DUMMY_KEY"',
            'model_providers.scripted.wire_api="responses"',
            "analytics.enabled=false",
        ]
        rest = f"args = {json.dumps([it for setting in settings for it in ('-c', setting)])}"
        monkeypatch.setenv("DUMMY_KEY", "dummy")
    elif engine == "opencode":
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{url}/v1", "apiKey": "dummy"},
            "models": {"m1": {"limit": {"context": 1_000_000, "output": 8_000}}},
        }
        own = {
            "provider": {"scripted": provider},
            "enabled_providers": ["scripted"],
            "model": "scripted/m1",
            "small_model": "scripted/m1",
            "autoupdate": False,
            "share": "disabled",
        }
        rest = 'model = "scripted/m1"'
        monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", json.dumps(own))
        for name in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD"):
            monkeypatch.setenv(f"OPENCODE_DISABLE_{name}", "1")
    else:
        rest = 'model = "gemini-2.5-flash"'
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url)
        monkeypatch.setenv("GEMINI_API_KEY", "dummy")
        own = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        (home / ".gemini").mkdir()
        (home / ".gemini" / "settings.json").write_text(json.dumps(own))
    config = home / ".config" / "linkspan"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f"start_timeout = 0\n[engines.{engine}]\n{rest}\n")


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
    point_to(played.url, engine, home, monkeypatch)
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
