"""Nothing outlives the Python that started it, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import children, is_running, wait_until

# A shell's background jobs ignore the signal, and so would what they start.
PROGRAM = """
import linkspan, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
for event in linkspan.run("look", engine=sys.argv[1]):
    print(event["seq"], flush=True)
"""

ASYNC_PROGRAM = """
import asyncio, linkspan, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
async def main():
    async for event in linkspan.arun("look", engine=sys.argv[1]):
        print(event["seq"], flush=True)
asyncio.run(main())
"""

# A process that does not end by itself, as an agent.
AGENT = """#!/bin/sh
echo $$ > "$0.pid"
exec sleep 600
"""


@pytest.fixture
def agent(home: Path) -> Path:
    agent = home / "agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    config = home / ".config" / "linkspan"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'[engines.claude]\nprogram = "{agent}"\n')
    return agent


@pytest.mark.parametrize(
    ("program", "how"),
    [
        (PROGRAM, signal.SIGTERM),
        (PROGRAM, signal.SIGKILL),
        (ASYNC_PROGRAM, signal.SIGKILL),
        (ASYNC_PROGRAM, signal.SIGINT),
    ],
)
def test_a_parent_that_is_killed_takes_all_with_it(
    agent: Path, program: str, how: signal.Signals
) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", program, "claude"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"1\n"
        pid = agent.with_name("agent.pid")
        wait_until(lambda: pid.exists() and pid.read_text().strip())
        started = int(pid.read_text())
        (linkspan,) = children("linkspan", of=parent.pid)
        assert is_running(started)
        os.kill(parent.pid, how)
    wait_until(lambda: not is_running(linkspan) and not is_running(started))


def test_an_exception_ends_all_as_well(agent: Path) -> None:
    program = PROGRAM.replace("print(", "raise SystemExit(").replace(", flush=True", "")
    done = subprocess.run([sys.executable, "-c", program, "claude"], check=False)
    assert done.returncode == 1
    pid = agent.with_name("agent.pid")
    if pid.exists() and pid.read_text().strip():
        wait_until(lambda: not is_running(int(pid.read_text())))
