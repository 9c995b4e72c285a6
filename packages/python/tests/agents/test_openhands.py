"""Agents of the OpenHands SDK: what is in the conversation, and what it costs."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from agents_model import OPEN, Model, bash, text
from openhands.sdk import LLM, Conversation, Tool
from openhands.sdk.agent.base import AgentBase
from openhands.sdk.conversation import LocalConversation
from openhands.sdk.conversation.exceptions import ConversationRunError
from openhands.sdk.event import (
    ActionEvent,
    AgentErrorEvent,
    Event,
    LLMConvertibleEvent,
    ObservationEvent,
    SystemPromptEvent,
    UserRejectObservation,
)
from openhands.sdk.event.conversation_error import ConversationErrorEvent
from pydantic import ValidationError

import linkspan
import linkspan.openhands as ours

ALLOWED = ["Bash", "Read", "Write"]


def conversation(folder: Path, agent: AgentBase | None = None, **options: Any) -> Any:
    agent = agent or ours.ClaudeCodeAgent(llm=LLM(model="claude-code"), allowed_tools=ALLOWED)
    made = Conversation(agent, workspace=str(folder), visualizer=None, **options)
    OPEN.append(made)
    return made


def kinds(events: Sequence[Event]) -> list[str]:
    return [f"{type(it).__name__} {it.source}" for it in events]


def said(event: Event) -> str:
    assert isinstance(event, LLMConvertibleEvent)
    return "".join(getattr(it, "text", "") for it in event.to_llm_message().content)


def ends(session: str) -> list[dict[str, Any]]:
    """Claude Code's own last words of each run."""
    return [it["data"]["detail"] for it in linkspan.events(session) if it["type"] == "run.ended"]


def test_the_snippet_of_the_proposal_runs(model: Callable[..., Model]) -> None:
    played = model(main=[text("Hello there.")])
    snippet = Path(__file__).with_name("proposal.py")
    done = subprocess.run(
        [sys.executable, str(snippet)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Hello there." in done.stdout
    assert len(played.requests()) == 1
    assert Path("workspace/project").is_dir()


def test_every_event_is_there_and_counted_once(model: Callable[..., Model], tmp_path: Path) -> None:
    played = model(
        main=[
            {
                "blocks": [
                    {"thinking": "Two things are wanted."},
                    {"text": "I will do both."},
                    {"tool": "Bash", "input": {"command": "echo one"}},
                    {"tool": "Bash", "input": {"command": "echo two > file; exit 3"}},
                ]
            },
            bash("cat file"),
            text("Both are done."),
            text("Still here."),
        ]
    )
    talk = conversation(tmp_path)
    talk.send_message("Do it.")
    talk.run()
    events = list(talk.state.events)
    assert kinds(events) == [
        "SystemPromptEvent agent",
        "MessageEvent user",
        "ActionEvent agent",
        "ActionEvent agent",
        "ObservationEvent environment",
        "ObservationEvent environment",
        "ActionEvent agent",
        "ObservationEvent environment",
        "MessageEvent agent",
    ]
    assert talk.state.execution_status.value == "finished"
    actions = [it for it in events if isinstance(it, ActionEvent)]
    results = [it for it in events if isinstance(it, ObservationEvent)]
    assert [it.tool_name for it in actions] == ["Bash"] * 3
    assert [json.loads(it.tool_call.arguments) for it in actions] == [
        {"command": "echo one"},
        {"command": "echo two > file; exit 3"},
        {"command": "cat file"},
    ]
    first, second, third = actions
    assert (first.reasoning_content, [it.text for it in first.thought]) == (
        "Two things are wanted.",
        ["I will do both."],
    )
    assert first.llm_response_id == second.llm_response_id != third.llm_response_id
    assert {it.tool_call_id: it.action_id for it in results} == {
        it.tool_call_id: it.id for it in actions
    }
    by_call = {it.tool_call_id: it.observation for it in results}
    assert [by_call[it.tool_call_id].is_error for it in actions] == [False, True, False]
    assert by_call[first.tool_call_id].text.strip().endswith("one")
    assert said(events[-1]) == "Both are done."
    # The engine's own figures, to the digit.
    session = talk.state.agent_state["linkspan"]["session"]
    (end,) = ends(session)
    usage = talk.conversation_stats.get_combined_metrics().accumulated_token_usage
    assert talk.conversation_stats.get_combined_metrics().accumulated_cost == pytest.approx(
        end["total_cost_usd"], abs=1e-12
    )
    assert (
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
    ) == (
        end["usage"]["input_tokens"],
        end["usage"]["output_tokens"],
        end["usage"]["cache_read_input_tokens"],
        end["usage"]["cache_creation_input_tokens"],
    )
    # The second turn goes on in the same session of the engine.
    talk.send_message("Are you there?")
    talk.run()
    assert kinds(list(talk.state.events)[len(events) :]) == [
        "MessageEvent user",
        "MessageEvent agent",
    ]
    assert said(talk.state.events[-1]) == "Still here."
    assert talk.state.agent_state["linkspan"]["session"] == session
    assert all(it in played.last() for it in ("Do it.", "Both are done.", "Are you there?"))
    _, second_end = ends(session)
    assert second_end["session_id"] == end["session_id"]
    assert talk.conversation_stats.get_combined_metrics().accumulated_cost == pytest.approx(
        second_end["total_cost_usd"], abs=1e-12
    )
    messages = LLMConvertibleEvent.events_to_messages(
        [it for it in talk.state.events if isinstance(it, LLMConvertibleEvent)]
    )
    assert [it.role for it in messages].count("tool") == 3
    talk.close()
    talk.close()


def test_a_tool_that_is_not_allowed(model: Callable[..., Model], tmp_path: Path) -> None:
    model(main=[bash("echo no > denied"), text("Then not.")])
    agent = ours.ClaudeCodeAgent(llm=LLM(model="claude-code"), allowed_tools=["Read"])
    talk = conversation(tmp_path, agent)
    talk.send_message("Write it.")
    talk.run()
    assert kinds(talk.state.events)[2:] == [
        "ActionEvent agent",
        "UserRejectObservation environment",
        "MessageEvent agent",
    ]
    assert isinstance(talk.state.events[3], UserRejectObservation)
    assert not (tmp_path / "denied").exists()


def test_a_model_that_fails_is_one_error(model: Callable[..., Model], tmp_path: Path) -> None:
    # Claude Code asks more than once.
    refused = [{"status": 400, "message": "the prompt is too odd"}] * 20
    played = model(main=refused, after=[text("Now it works.")])
    talk = conversation(tmp_path)
    talk.send_message("Do it.")
    for n_errors in (1, 2):
        # What has failed is tried again.
        with pytest.raises(ConversationRunError, match="too odd"):
            talk.run()
        errors = [it for it in talk.state.events if isinstance(it, ConversationErrorEvent)]
        assert [it.source for it in errors] == ["agent"] * n_errors
        assert talk.state.execution_status.value == "error"
    talk.send_message("[[lane:after]] Do something else.")
    talk.run()
    assert said(talk.state.events[-1]) == "Now it works."
    assert talk.state.execution_status.value == "finished"
    # What is done is done.
    n_requests = len(played.requests())
    talk.run()
    assert len(played.requests()) == n_requests


def test_text_comes_as_it_is_written(model: Callable[..., Model], tmp_path: Path) -> None:
    model(main=[{"blocks": [{"thinking": "Hm."}, {"text": "One, two, three."}], "chunk": 5}])
    chunks: list[Any] = []
    frames: list[Any] = []
    agent = ours.ClaudeCodeAgent(llm=LLM(model="claude-code"))
    talk = LocalConversation(
        agent,
        workspace=str(tmp_path),
        visualizer=None,
        token_callbacks=[chunks.append],
        stream_callbacks=[frames.append],
    )
    OPEN.append(talk)
    talk.send_message("Count.")
    talk.run()
    deltas = [it.choices[0].delta for it in chunks]
    assert "".join(it.content or "" for it in deltas) == "One, two, three."
    assert len([it for it in deltas if it.content]) > 2
    assert {it.item_id for it in frames} == {talk.state.events[-1].id}
    assert not [it for it in talk.state.events if type(it).__name__ == "StreamingDeltaEvent"]


def test_a_conversation_is_opened_again_by_another_process(
    model: Callable[..., Model], tmp_path: Path
) -> None:
    played = model(main=[text("Hello."), text("Again.")])
    kept = tmp_path / "kept"
    agent = ours.ClaudeCodeAgent(llm=LLM(model="claude-code"), env={"SOME_KEY": "sk-secret"})
    talk = conversation(
        tmp_path / "work",
        agent,
        persistence_dir=str(kept),
        conversation_id=uuid.UUID(int=7),
        delete_on_close=False,
    )
    talk.send_message("Say hello.")
    talk.run()
    talk.close()
    assert "sk-secret" not in "".join(it.read_text() for it in kept.rglob("*.json"))
    # The events are the SDK's own: a program that does not know linkspan reads them.
    program = """
import pathlib, sys, uuid
import litellm
from openhands.sdk import LLM, Conversation
from openhands.sdk.event import Event
files = pathlib.Path(sys.argv[2]).rglob("event-*.json")
loaded = len([Event.model_validate_json(it.read_text()) for it in files])
from linkspan.openhands import ClaudeCodeAgent
agent = ClaudeCodeAgent(llm=LLM(model="claude-code"))
talk = Conversation(agent, workspace=sys.argv[1], persistence_dir=sys.argv[2],
                    conversation_id=uuid.UUID(int=7), visualizer=None, delete_on_close=False)
talk.send_message("And again?")
talk.run()
cost = talk.conversation_stats.get_combined_metrics().accumulated_cost
print(loaded, len(talk.state.events), talk.state.agent_state["linkspan"]["session"], cost)
talk.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "work"), str(kept)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded, n_events, session, cost = done.stdout.split("\n")[-2].split(" ")
    assert (loaded, n_events) == ("3", "5")
    assert session == talk.state.agent_state["linkspan"]["session"]
    assert "Say hello." in played.last()
    # Claude Code says what the session has cost so far: both turns, each of them counted once.
    first, both = (end["total_cost_usd"] for end in ends(session))
    assert float(cost) == pytest.approx(both, abs=1e-12)
    assert both == pytest.approx(2 * first, abs=1e-12)


def test_a_fork_leaves_the_session_alone(model: Callable[..., Model], tmp_path: Path) -> None:
    played = model(main=[text("Hello."), text("Copied."), text("First.")])
    talk = conversation(tmp_path)
    talk.send_message("Say hello.")
    talk.run()
    copy = talk.fork()
    OPEN.append(copy)
    copy.send_message("Which one are you?")
    copy.run()
    assert said(copy.state.events[-1]) == "Copied."
    assert len(copy.state.events) == 5
    assert "Say hello." in played.last()
    talk.send_message("And you?")
    talk.run()
    assert said(talk.state.events[-1]) == "First."
    assert "Which one" not in played.last()
    sessions = [it.state.agent_state["linkspan"]["session"] for it in (talk, copy)]
    assert len(set(sessions)) == 2


def test_a_question_on_the_side(model: Callable[..., Model], tmp_path: Path) -> None:
    played = model(main=[text("Hello."), text("You said hello.")])
    talk = conversation(tmp_path)
    talk.send_message("Say hello.")
    talk.run()
    n_events = len(talk.state.events)
    assert talk.ask_agent("What did I say?") == "You said hello."
    assert len(talk.state.events) == n_events
    assert "Say hello." in played.last()


def test_a_recording_is_an_engine_as_well(tmp_path: Path) -> None:
    agent = ours.LinkspanAgent(engine="replay:tools", profile="external")
    talk = conversation(tmp_path, agent)
    talk.send_message("look")
    talk.run()
    actions = [it for it in talk.state.events if isinstance(it, ActionEvent)]
    assert [type(it.action) for it in actions] == [ours.ExternalToolAction] * 6
    results = [it for it in talk.state.events if isinstance(it, ObservationEvent)]
    assert {type(it.observation) for it in results} == {ours.ExternalToolObservation}


def test_calls_can_look_like_those_of_openhands_itself(tmp_path: Path) -> None:
    talk = conversation(tmp_path, ours.LinkspanAgent(engine="replay:tools", profile="native"))
    talk.send_message("look")
    talk.run()
    actions = [it for it in talk.state.events if isinstance(it, ActionEvent)]
    assert [type(it.action).__name__ for it in actions] == [
        "TerminalAction",
        *["FileEditorAction"] * 5,
    ]


def test_a_conversation_cannot_be_moved_to_before_its_last_prompt(tmp_path: Path) -> None:
    talk = conversation(tmp_path, ours.LinkspanAgent(engine="replay:tools"))
    talk.send_message("look")
    talk.run()
    talk.navigate_to(talk.state.events[0].id)
    talk.send_message("from the beginning")
    with pytest.raises(ConversationRunError, match="moved to before its last prompt"):
        talk.run()


def test_agents_are_models_of_the_sdk() -> None:
    agent = ours.ClaudeCodeAgent(allowed_tools=["Read"], env={"SOME_KEY": "sk-secret"})
    stored = agent.model_dump(mode="json")
    assert "sk-secret" not in json.dumps(stored)
    again = AgentBase.model_validate(stored)
    assert type(again) is ours.ClaudeCodeAgent
    assert (again.engine, again.allowed_tools, again.env) == ("claude", ["Read"], {})
    assert agent.agent_kind == "openhands"
    with pytest.raises(ValidationError):
        ours.ClaudeCodeAgent(engine="codex")  # type: ignore[arg-type]


def test_openhands_names_of_tools_are_understood_or_refused(tmp_path: Path) -> None:
    tools = [Tool(name="TerminalTool"), Tool(name="file_editor"), Tool(name="browser_use")]
    agent = ours.ClaudeCodeAgent(tools=tools)
    talk = conversation(tmp_path, agent)
    talk.send_message("look")
    assert isinstance(talk.state.events[0], SystemPromptEvent)
    assert talk.state.events[0].system_prompt.text.endswith(
        "tools Bash, Read, Edit, Write, WebFetch"
    )
    for wrong, options in (
        ("`task_tracker` of `tools`", {"tools": [Tool(name="task_tracker")]}),
        ("takes no `mcp_config`", {"mcp_config": {"a": {"command": "b"}}}),
    ):
        refused = conversation(tmp_path, ours.ClaudeCodeAgent(**options))
        with pytest.raises(ValueError, match=wrong):
            refused.send_message("look")


def test_calls_whose_agent_is_gone_are_closed(tmp_path: Path) -> None:
    talk = conversation(tmp_path, ours.LinkspanAgent(engine="replay:tools"))
    talk.send_message("look")
    talk.run()
    action = next(it for it in talk.state.events if isinstance(it, ActionEvent))
    lost = action.model_copy(
        update={"id": "00000000-0000-4000-8000-000000000000", "tool_call_id": "lost"}
    )
    with talk.state:
        talk._on_event(lost.model_copy(update={"parent_id": None}))
    talk.send_message("more")
    with pytest.raises(ConversationRunError, match="it can be watched, but not replied to"):
        talk.run()
    assert kinds(talk.state.events)[-3:] == [
        "MessageEvent user",
        "AgentErrorEvent agent",
        "ConversationErrorEvent agent",
    ]
    closed = talk.state.events[-2]
    assert isinstance(closed, AgentErrorEvent)
    assert closed.tool_call_id == "lost"
