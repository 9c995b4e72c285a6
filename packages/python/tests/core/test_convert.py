"""Recordings and stored sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import ROOT, children

import linkspan

RECORDING = ROOT / "fixtures/claude/text.partial.jsonl"


def test_the_events_of_a_recording() -> None:
    golden = RECORDING.with_name("text.partial.events.jsonl").read_text(encoding="utf-8")
    wanted = [json.loads(it) for it in golden.split("\n") if it]
    found = list(linkspan.events(RECORDING))
    assert [it["type"] for it in found] == [it["type"] for it in wanted]
    assert [it["data"] for it in found] == [it["data"] for it in wanted]


def test_the_events_of_a_session_after_a_cursor() -> None:
    session = linkspan.run("look", engine="replay:tools")
    events = list(session)
    assert list(linkspan.events(session.session)) == events
    assert list(linkspan.events(session.session, since=60)) == events[60:]


def test_another_format() -> None:
    lines = [json.loads(it) for it in linkspan.convert(RECORDING, to="openhands")]
    assert {it["kind"] for it in lines} >= {"SystemPromptEvent", "MessageEvent"}
    events = "".join(f"{it}\n" for it in linkspan.convert(RECORDING, to="ag-ui")).split("\n\n")
    assert events[0].startswith("data: {")
    message = linkspan.convert(RECORDING, source="claude", to="openhands", profile="message")
    assert sum(json.loads(it)["kind"] == "MessageEvent" for it in message) == 1


def test_leaving_the_loop_ends_the_program(tmp_path: Path) -> None:
    long = tmp_path / "long.jsonl"
    line = next(iter(linkspan.convert(RECORDING, to="linkspan")))
    long.write_text(f"{line}\n" * 50_000)
    for _ in linkspan.convert(long, source="linkspan", to="linkspan"):
        assert len(children("linkspan")) == 1
        break
    assert children("linkspan") == []


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(linkspan.LinkspanError) as wrong:
        list(linkspan.convert(RECORDING, to="nothing"))
    assert wrong.value.code == "bad_usage"
    with pytest.raises(linkspan.LinkspanError) as wrong:
        list(linkspan.convert(tmp_path / "nothing.jsonl", to="text"))
    assert wrong.value.code == "io"
    with pytest.raises(linkspan.LinkspanError) as wrong:
        list(linkspan.events("01991a2b"))
    assert wrong.value.message == "no session matches `01991a2b`"
    assert wrong.value.hint is not None
