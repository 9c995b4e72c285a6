"""Agents of the OpenHands SDK: confirming, stopping, and speaking while they work."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents_model import Model, bash, text
from conftest import children, wait_until
from openhands.sdk.conversation.exceptions import ConversationRunError
from openhands.sdk.event import ActionEvent, InterruptEvent, MessageEvent, PauseEvent
from openhands.sdk.security.analyzer import SecurityAnalyzerBase
from openhands.sdk.security.confirmation_policy import AlwaysConfirm, ConfirmRisky
from openhands.sdk.security.risk import SecurityRisk
from test_openhands import conversation, kinds, said


class AfraidOfRemoving(SecurityAnalyzerBase):
    """Finds that removing files is risky."""

    def security_risk(self, action: ActionEvent) -> SecurityRisk:
        return SecurityRisk.HIGH if "rm " in action.tool_call.arguments else SecurityRisk.LOW


def test_what_is_confirmed_runs(model: Callable[..., Model], tmp_path: Path) -> None:
    model(main=[bash("echo yes > confirmed"), bash("echo no > refused"), text("As you wish.")])
    talk = conversation(tmp_path)
    talk.set_confirmation_policy(AlwaysConfirm())
    talk.send_message("Write both.")
    talk.run()
    assert talk.state.execution_status.value == "waiting_for_confirmation"
    assert kinds(talk.state.events)[2:] == ["ActionEvent agent"]
    assert not (tmp_path / "confirmed").exists()
    # Going on is a yes.
    talk.run()
    assert (tmp_path / "confirmed").read_text() == "yes\n"
    assert talk.state.execution_status.value == "waiting_for_confirmation"
    talk.reject_pending_actions("not this one")
    talk.run()
    assert talk.state.execution_status.value == "finished"
    assert not (tmp_path / "refused").exists()
    assert kinds(talk.state.events)[2:] == [
        "ActionEvent agent",
        "ObservationEvent environment",
        "ActionEvent agent",
        "UserRejectObservation environment",
        "MessageEvent agent",
    ]


def test_the_model_hears_why_not(model: Callable[..., Model], tmp_path: Path) -> None:
    played = model(main=[bash("echo no > refused"), text("As you wish.")])
    talk = conversation(tmp_path)
    talk.set_confirmation_policy(AlwaysConfirm())
    talk.send_message("Write it.")
    talk.run()
    talk.reject_pending_actions("not on a Tuesday")
    talk.run()
    assert "not on a Tuesday" in played.last()


def test_an_analyzer_says_what_is_risky(model: Callable[..., Model], tmp_path: Path) -> None:
    model(main=[bash("echo yes > file"), bash("rm file"), text("Done.")])
    talk = conversation(tmp_path)
    talk.set_security_analyzer(AfraidOfRemoving())
    talk.set_confirmation_policy(ConfirmRisky())
    talk.send_message("Write and remove.")
    talk.run()
    assert talk.state.execution_status.value == "waiting_for_confirmation"
    assert (tmp_path / "file").exists()
    talk.run()
    assert talk.state.execution_status.value == "finished"
    assert not (tmp_path / "file").exists()


def test_a_run_is_interrupted_from_another_thread(
    model: Callable[..., Model], tmp_path: Path
) -> None:
    played = model(
        main=[bash("touch begun; sleep 600; touch ended"), text("Stopped.")], after=[text("Here.")]
    )
    talk = conversation(tmp_path)
    talk.send_message("Sleep.")
    working = threading.Thread(target=talk.run)
    working.start()
    wait_until(lambda: (tmp_path / "begun").exists(), 30)
    before = time.monotonic()
    talk.interrupt()
    working.join(20)
    assert not working.is_alive()
    assert time.monotonic() - before < 6
    assert talk.state.execution_status.value == "paused"
    # Claude Code still says what became of the call.
    assert kinds(talk.state.events)[2:4] == ["ActionEvent agent", "ObservationEvent environment"]
    assert talk.state.events[3].observation.is_error
    assert sum(isinstance(it, PauseEvent) for it in talk.state.events) == 1
    assert not [it for it in talk.state.events if type(it).__name__ == "ConversationErrorEvent"]
    talk.send_message("[[lane:after]] Are you there?")
    talk.run()
    assert said(talk.state.events[-1]) == "Here."
    assert "Sleep." in played.last()
    assert not (tmp_path / "ended").exists()


def test_an_async_run_is_interrupted(model: Callable[..., Model], tmp_path: Path) -> None:
    model(main=[bash("touch begun; sleep 600; touch ended")], after=[text("Here.")])
    talk = conversation(tmp_path)

    async def main() -> None:
        talk.send_message("Sleep.")
        task = asyncio.create_task(talk.arun())
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0.02)
        before = time.monotonic()
        talk.interrupt()
        await task
        assert time.monotonic() - before < 6
        assert talk.state.execution_status.value == "paused"
        assert sum(isinstance(it, InterruptEvent) for it in talk.state.events) == 1
        assert kinds(talk.state.events)[2:] == [
            "ActionEvent agent",
            "ObservationEvent environment",
            "InterruptEvent user",
        ]
        talk.send_message("[[lane:after]] Are you there?")
        await talk.arun()
        assert said(talk.state.events[-1]) == "Here."

    asyncio.run(main())


def test_a_message_is_taken_while_the_agent_works(
    model: Callable[..., Model], tmp_path: Path
) -> None:
    model(
        main=[bash("touch begun; while [ ! -e go ]; do sleep 0.05; done"), text("First.")],
        second=[text("Second.")],
    )
    talk = conversation(tmp_path)

    async def main() -> None:
        talk.send_message("Wait.")
        task = asyncio.create_task(talk.arun())
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0.02)
        await asyncio.to_thread(talk.send_message, "[[lane:second]] And this.")
        assert isinstance(talk.state.events[-1], MessageEvent)
        (tmp_path / "go").touch()
        await task

    asyncio.run(main())
    assert talk.state.execution_status.value == "finished"
    answers = [
        said(it)
        for it in talk.state.events
        if isinstance(it, MessageEvent) and it.source == "agent"
    ]
    assert answers == ["First.", "Second."]


def test_async_runs_confirm_as_well(model: Callable[..., Model], tmp_path: Path) -> None:
    model(main=[bash("echo yes > confirmed"), text("Done.")])
    talk = conversation(tmp_path)
    talk.set_confirmation_policy(AlwaysConfirm())

    async def turn() -> Any:
        await talk.arun()
        return talk.state.execution_status.value

    talk.send_message("Write it.")
    # Each in an event loop of its own: the agent waits in between.
    assert asyncio.run(turn()) == "waiting_for_confirmation"
    assert asyncio.run(turn()) == "finished"
    assert (tmp_path / "confirmed").read_text() == "yes\n"


def test_an_engine_that_is_killed_is_an_error_and_comes_back(
    model: Callable[..., Model], tmp_path: Path
) -> None:
    model(main=[bash("touch begun; sleep 600")], after=[text("Here.")])
    talk = conversation(tmp_path)
    talk.send_message("Sleep.")

    def kill() -> None:
        wait_until(lambda: (tmp_path / "begun").exists(), 30)
        (linkspan,) = children("linkspan")
        os.kill(linkspan, signal.SIGKILL)

    threading.Thread(target=kill).start()
    with pytest.raises(ConversationRunError, match="ended by itself"):
        talk.run()
    talk.send_message("[[lane:after]] Are you there?")
    talk.run()
    assert said(talk.state.events[-1]) == "Here."
