"""Runs and conversations, over recordings."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest
from conftest import ROOT, children, wait_until

import linkspan
from linkspan.types import Event

# What the recording `tools` holds, and the prompt around it.
TOOLS = Counter(
    {
        "item.delta": 24,
        "item.opened": 10,
        "item.closed": 10,
        "notice.raised": 9,
        "item.updated": 6,
        "usage.reported": 4,
        "run.started": 1,
        "session.bound": 1,
        "run.ended": 1,
    }
)
ANSWER = "Everything is done: created notes/new.txt and edited src/calc.py."


def types(events: list[Event]) -> Counter[str]:
    return Counter(it["type"] for it in events)


def is_tool(event: Event) -> bool:
    return event["type"] == "item.opened" and event["data"]["kind"] == "tool"


def test_a_run_is_its_events_in_their_order() -> None:
    run = linkspan.run("look", engine="replay:tools")
    events = list(run)
    assert types(events) == TOOLS
    assert [it["seq"] for it in events] == list(range(1, 67))
    assert {it["session"] for it in events} == {run.session}
    assert (events[0]["type"], events[-1]["type"]) == ("run.started", "run.ended")
    assert run.cursor == 66


def test_a_run_has_a_result() -> None:
    result = linkspan.run("look", engine="replay:tools").result()
    assert (result["outcome"], result.get("answer")) == ("completed", ANSWER)


def test_the_end_of_a_run_is_the_end_of_its_program() -> None:
    with linkspan.run("look", engine="replay:tools") as run:
        assert len(children("linkspan")) == 1
        run.result()
        assert children("linkspan") == []


def test_a_failed_run_is_events_and_a_failed_result(home: Path) -> None:
    agent = home / "agent"
    agent.write_text("#!/bin/sh\necho no licence was found >&2\nexit 7\n")
    agent.chmod(0o755)
    config = home / "config.toml"
    config.write_text(f'[engines.claude]\nprogram = "{agent}"\n')
    events = list(linkspan.run("look", engine="claude", config=config))
    assert events[-1]["type"] == "run.ended"
    assert events[-1]["data"]["outcome"] == "failed"
    with pytest.raises(linkspan.RunFailed) as failed:
        linkspan.run("look", engine="claude", config=config).result()
    assert (failed.value.outcome, failed.value.stderr) == ("failed", "no licence was found")
    assert "no licence was found" in str(failed.value)


def test_what_cannot_be_run_is_an_error_with_its_code() -> None:
    with pytest.raises(linkspan.LinkspanError) as refused:
        linkspan.run("look", engine="nobody")
    error = refused.value
    assert (error.code, error.message) == ("bad_engine", "there is no engine `nobody`")
    assert error.hint is not None
    assert str(error) == f"{error.message} ({error.hint})"


def test_leaving_the_loop_ends_the_run() -> None:
    for event in linkspan.run("look", engine="replay:tools", speed=0.01):
        session = event["session"]
        break
    # Nobody has closed it: that the last reference is gone is enough.
    gc.collect()
    wait_until(lambda: children("linkspan") == [])
    assert list(linkspan.events(session))[-1]["type"] == "run.ended"


def test_closing_a_run_waits_for_its_end() -> None:
    run = linkspan.run("look", engine="replay:tools", speed=0.01)
    next(run)
    run.close()
    run.close()
    assert children("linkspan") == []
    assert list(run) == []
    last = list(linkspan.events(run.session))[-1]
    assert last["type"] == "run.ended"
    assert last["data"]["outcome"] == "aborted"


def test_any_thread_may_abort() -> None:
    run = linkspan.run("look", engine="replay:tools", speed=0.01)
    threading.Timer(0.2, run.abort).start()
    with pytest.raises(linkspan.RunFailed) as failed:
        run.result()
    assert failed.value.outcome == "aborted"


def test_a_conversation_is_one_program() -> None:
    with linkspan.Conversation(engine="replay:tools", speed=0.01) as conversation:
        assert conversation.session is None
        first = conversation.send("look")
        program = children("linkspan")
        assert next(first)["type"] == "run.started"
        assert conversation.session == first.session
        conversation.abort()
        assert [it["type"] for it in first][-1] == "run.ended"
        # A recording cannot be replied to, and the conversation survives being told so.
        with pytest.raises(linkspan.LinkspanError) as refused:
            conversation.send("more")
        assert refused.value.code == "recording"
        assert children("linkspan") == program
    assert children("linkspan") == []
    with pytest.raises(linkspan.LinkspanError) as closed:
        conversation.send("more")
    assert closed.value.code == "closed"


def test_a_program_that_dies_is_an_error() -> None:
    run = linkspan.run("look", engine="replay:tools", speed=0.01)
    next(run)
    (program,) = children("linkspan")
    os.kill(program, signal.SIGKILL)
    with pytest.raises(linkspan.LinkspanError) as died:
        list(run)
    assert died.value.code == "program_ended"
    assert "exit status -9" in died.value.message
    run.close()


def test_session_and_fork_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="exclude each other"):
        linkspan.Conversation(session="a", fork="b")


def test_text_may_hold_every_kind_of_line_break(tmp_path: Path) -> None:
    text = "one\u2028two\u2029three\x85four\x0bfive\x0csix\r\nseven"
    recording = tmp_path / "breaks.jsonl"
    lines = (ROOT / "fixtures/claude/text.partial.jsonl").read_text(encoding="utf-8").split("\n")
    said = [json.loads(it) for it in lines if it]
    for it in said:
        if it["type"] == "assistant":
            it["message"]["content"][-1]["text"] = text
        if it["type"] == "result":
            it["result"] = text
    said = [it for it in said if it["type"] != "stream_event"]
    recording.write_text("".join(json.dumps(it, ensure_ascii=False) + "\n" for it in said))
    prompt = "a\u2028b"
    run = linkspan.run(prompt, engine=f"replay:{recording}")
    assert run.result().get("answer") == text
    (asked,) = (
        it["data"]["item"]
        for it in linkspan.events(run.session)
        if it["type"] == "item.closed" and it["origin"] == "client"
    )
    assert asked["kind"] == "message"
    assert asked["text"] == prompt


def test_folders_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "mein Ordner – 工作 'quoted'"
    folder.mkdir()
    recording = folder / "a b é.jsonl"
    recording.write_bytes((ROOT / "fixtures/claude/text.partial.jsonl").read_bytes())
    run = linkspan.run("look", engine=f"replay:{recording}", cwd=folder, data_dir=folder / "data")
    assert run.result()["outcome"] == "completed"
    assert (folder / "data" / "journal.sqlite").exists()
    stored = list(linkspan.events(run.session, data_dir=folder / "data"))
    assert stored[-1]["type"] == "run.ended"
    assert len(list(linkspan.events(recording))) > 5


def test_a_run_without_blocking() -> None:
    async def main() -> list[Event]:
        return [it async for it in linkspan.arun("look", engine="replay:tools")]

    assert types(asyncio.run(main())) == TOOLS
    assert children("linkspan") == []


def test_the_event_loop_goes_on_while_an_agent_works() -> None:
    async def taken(run: linkspan.AsyncRun) -> int | None:
        try:
            return (await asyncio.wait_for(anext(run), timeout=0.3))["seq"]
        except asyncio.TimeoutError:
            return None

    async def main() -> None:
        run = linkspan.arun("look", engine="replay:tools", speed=0.01)
        assert run.session is None
        seqs: list[int] = [(await anext(run))["seq"]]
        # Taking the next event can be given up, and nothing is lost by it.
        while (seq := await taken(run)) is not None:
            seqs.append(seq)
        await run.abort()
        seqs += [it["seq"] async for it in run]
        assert seqs == list(range(1, seqs[-1] + 1))
        with pytest.raises(linkspan.RunFailed):
            await run.result()

    asyncio.run(main())


def test_leaving_an_async_loop_ends_the_run() -> None:
    async def main() -> str:
        async for event in linkspan.arun("look", engine="replay:tools", speed=0.01):
            if is_tool(event):
                return event["session"]
        raise AssertionError

    session = asyncio.run(main())
    gc.collect()
    wait_until(lambda: children("linkspan") == [])
    assert list(linkspan.events(session))[-1]["type"] == "run.ended"


def test_a_conversation_without_blocking() -> None:
    async def main() -> None:
        async with linkspan.Conversation(engine="replay:tools", speed=0.01) as conversation:
            assert (await anext(conversation.send("look")))["type"] == "run.started"
            # The run before was not finished: it is aborted, and a recording takes no reply.
            with pytest.raises(linkspan.LinkspanError) as refused:
                await conversation.send("more").result()
            assert refused.value.code == "recording"
        assert children("linkspan") == []

    asyncio.run(main())


def test_cancelling_a_task_ends_its_run() -> None:
    async def work() -> None:
        async with linkspan.arun("look", engine="replay:tools", speed=0.01) as run:
            async for _ in run:
                started.set()

    async def main() -> None:
        task = asyncio.create_task(work())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert children("linkspan") == []

    started = asyncio.Event()
    asyncio.run(main())


def test_closing_a_conversation_ends_everybody_who_waits() -> None:
    async def main() -> None:
        async with linkspan.Conversation(engine="replay:tools", speed=0.01) as conversation:
            run = conversation.send("look")
            await anext(run)
            others = [asyncio.create_task(run.result()) for _ in range(2)]
            await asyncio.sleep(0)
        # Some see the end of the run, which is aborted, and some the end of the program.
        ended = await asyncio.gather(*others, return_exceptions=True)
        assert [it for it in ended if not isinstance(it, linkspan.LinkspanError)] == []

    asyncio.run(main())
