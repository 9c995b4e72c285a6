"""The real Claude Code on a scripted model, in an empty home."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scripted_engines import start_model

OPEN: list[Any] = []
"""Conversations that a test has opened; they are closed when it has ended, however it did."""


@dataclass
class Model:
    """A running `scripted-model`."""

    url: str
    log: Path

    def requests(self) -> list[dict[str, Any]]:
        """What the agent has sent, without what took no turn of the script."""
        lines = self.log.read_text(encoding="utf-8").split("\n") if self.log.exists() else []
        said = [json.loads(it) for it in lines if it]
        return [json.loads(it["body"]) for it in said if it["lane"] is not None]

    def last(self) -> str:
        """The messages of the last request."""
        return json.dumps(self.requests()[-1]["messages"], ensure_ascii=False)


@pytest.fixture
def model(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Model]]:
    """Starts a model that plays these lanes, each of them the turns of prompts that name it."""
    running = []

    def start(**lanes: list[dict[str, Any]]) -> Model:
        scenario = tmp_path / "scenario.json"
        scenario.write_text(json.dumps({"lanes": lanes}))
        log = tmp_path / "requests.jsonl"
        program = _named("LINKSPAN_SCRIPTED_MODEL")
        process, address = start_model(program, scenario, "--log", str(log))
        running.append(process)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
        return Model(address, log)

    monkeypatch.setenv("PATH", f"{_named('LINKSPAN_AGENTS')}{os.pathsep}{os.environ['PATH']}")
    # As in the proposal: a key in the environment is all that an agent is given.
    monkeypatch.setenv("ANTHROPIC_API_KEY", "dummy")
    monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", "1")
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Closes what a test has opened."""
    yield
    while OPEN:
        OPEN.pop().close()


_NAMES = {name: os.environ.get(name) for name in ("LINKSPAN_AGENTS", "LINKSPAN_SCRIPTED_MODEL")}


def _named(name: str) -> str:
    found = _NAMES[name]
    assert found, f"{name} is not set: run these tests with `cargo xtask peers python`"
    return found


def text(said: str) -> dict[str, Any]:
    """A turn that only says something."""
    return {"blocks": [{"text": said}]}


def bash(command: str, *before: dict[str, Any]) -> dict[str, Any]:
    """A turn that runs a command."""
    return {"blocks": [*before, {"tool": "Bash", "input": {"command": command}}]}
