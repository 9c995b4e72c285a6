"""A server, from Python."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_run import ANSWER, TOOLS

import linkspan

TOKEN = "t" * 40


class Served:
    """A server that can be stopped and started again at the same address."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._listen = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [linkspan.binary_path(), "serve", "--listen", self._listen, "--data-dir", self._data],
            env={**os.environ, "LINKSPAN_TOKEN": TOKEN},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        found = None
        while found is None:
            found = re.search(r"http://(127\.0\.0\.1:\d+)", self._process.stderr.readline())
        self.url, self._listen = found.group(0), found.group(1)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path / "served")
    yield served
    served.stop()


def test_a_run_on_a_server(server: Served) -> None:
    client = linkspan.Client(server.url, TOKEN)
    run = client.run("look", engine="replay:tools")
    assert Counter(it["type"] for it in run) == TOOLS
    assert [it["id"] for it in client.sessions()] == [run.session]
    assert client.session(run.session)["head"] == 66
    assert client.asks() == []
    assert "claude" in [it["name"] for it in client.engines()]
    assert client.run("look", engine="replay:tools").result().get("answer") == ANSWER
    assert client.abort(run.session) is False


def test_leaving_the_loop_aborts_the_run(server: Served) -> None:
    client = linkspan.Client(server.url, TOKEN)
    with client.run("look", engine="replay:tools", speed=0.01) as run:
        next(run)
    assert [it["outcome"] for it in client.session(run.session)["runs"]] == ["aborted"]


def test_events_after_a_cursor_and_those_to_come(server: Served) -> None:
    client = linkspan.Client(server.url, TOKEN)
    run = client.run("look", engine="replay:tools")
    events = list(run)
    assert list(itertools.islice(client.events(run.session), 66)) == events
    slow = client.run("look", engine="replay:tools", speed=0.01)
    following = client.events(slow.session)
    assert next(following)["type"] == "run.started"
    slow.abort()
    assert "run.ended" in (it["type"] for it in following)
    slow.close()


def test_a_server_that_comes_back_is_followed_without_a_gap(server: Served) -> None:
    client = linkspan.Client(server.url, TOKEN)
    run = client.run("look", engine="replay:tools", speed=0.01)
    events = [next(run)]
    server.stop()
    server.start()
    # The server says what became of the run that it was killed in.
    events += run
    assert [it["seq"] for it in events] == list(range(1, len(events) + 1))
    with pytest.raises(linkspan.RunFailed) as failed:
        run.result()
    assert failed.value.outcome == "lost"


def test_what_a_server_refuses(server: Served) -> None:
    with pytest.raises(linkspan.LinkspanError) as refused:
        linkspan.Client(server.url, "wrong").sessions()
    assert (refused.value.code, refused.value.status) == ("unauthorized", 401)
    with pytest.raises(linkspan.LinkspanError) as refused:
        list(linkspan.Client(server.url, TOKEN).events("nothing"))
    assert (refused.value.code, refused.value.status) == ("no_such_session", 404)
    with pytest.raises(linkspan.LinkspanError) as refused:
        linkspan.Client("localhost:8787")
    assert refused.value.code == "bad_url"
    server.stop()
    with pytest.raises(linkspan.LinkspanError) as refused:
        linkspan.Client(server.url, TOKEN).sessions()
    assert (refused.value.code, refused.value.status) == ("connection", None)


def test_a_server_without_blocking(server: Served) -> None:
    async def main() -> None:
        async with linkspan.Client(server.url, TOKEN) as client:
            run = client.run("look", engine="replay:tools")
            assert Counter([it["type"] async for it in run]) == TOOLS
            assert [it["id"] for it in await client.sessions()] == [run.session]
            assert run.session is not None
            assert (await client.session(run.session))["head"] == 66
            assert await client.asks() == []
            async with client.run("look", engine="replay:tools", speed=0.01) as slow:
                await anext(slow)
                assert slow.session is not None
                assert await client.abort(slow.session) is True
            following = client.events(run.session, since=64)
            assert [(await anext(following))["seq"] for _ in range(2)] == [65, 66]
            await following.aclose()  # type: ignore[attr-defined]
            async with client.conversation(engine="replay:tools") as conversation:
                assert (await conversation.send("look").result())["outcome"] == "completed"

    asyncio.run(main())
