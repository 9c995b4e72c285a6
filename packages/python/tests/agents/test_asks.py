"""What an agent asks, and several turns of one session, with the real Claude Code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from agents_model import Model, bash, text

import linkspan
from linkspan.types import AskOpenedEvent


def test_asks_are_answered_and_the_session_goes_on(
    model: Callable[..., Model], tmp_path: Path
) -> None:
    played = model(main=[bash("echo yes > asked"), text("Written."), text("You are welcome.")])
    with linkspan.Conversation(engine="claude", cwd=tmp_path, permissions="ask") as conversation:
        run = conversation.send("Write it.")
        asks: list[AskOpenedEvent] = []
        for event in run:
            if event["type"] == "ask.opened":
                assert not (tmp_path / "asked").exists()
                asks.append(event)
                conversation.settle(event, "allow")
        assert [it["data"]["tool"] for it in asks] == ["Bash"]
        assert (tmp_path / "asked").read_text() == "yes\n"
        assert run.result().get("answer") == "Written."
        assert conversation.send("Thank you.").result().get("answer") == "You are welcome."
        session = conversation.session
    assert "Write it." in played.last()
    assert session is not None
    assert sum(it["type"] == "run.ended" for it in linkspan.events(session)) == 2


def test_a_session_is_resumed_by_another_conversation(model: Callable[..., Model]) -> None:
    played = model(main=[text("Hello."), text("Again."), text("A copy.")])
    first = linkspan.run("Say hello.", engine="claude")
    assert first.result().get("answer") == "Hello."
    again = linkspan.run("And again?", session=first.session)
    assert (again.session, again.result().get("answer")) == (first.session, "Again.")
    copy = linkspan.run("And again?", fork=first.session)
    assert copy.session != first.session
    events = list(copy)
    # Those of the other session are not its own, though the prompt is the same.
    assert [it["type"] for it in events if it["type"].startswith("run.")] == [
        "run.started",
        "run.ended",
    ]
    assert copy.result().get("answer") == "A copy."
    assert all(it in played.last() for it in ("Say hello.", "Hello.", "Again."))


def test_an_agent_is_told_why_not(model: Callable[..., Model], tmp_path: Path) -> None:
    played = model(main=[bash("echo no > asked"), text("Then not.")])

    async def main() -> None:
        async with linkspan.Conversation(
            engine="claude", cwd=tmp_path, permissions="ask"
        ) as conversation:
            async for event in conversation.send("Write it."):
                if event["type"] == "ask.opened":
                    await conversation.settle(event, "deny", message="not on a Tuesday")
                elif event["type"] == "run.ended":
                    denied = event["data"].get("denials", [])
                    assert [it["tool"] for it in denied] == ["Bash"]

    asyncio.run(main())
    assert "not on a Tuesday" in played.last()
    assert not (tmp_path / "asked").exists()
