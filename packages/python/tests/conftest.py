"""What every test has around it: an empty home, and a data directory of its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

# For the programs that tests start; `pytest.ini` does it for the tests themselves.
os.environ["PYTHONPATH"] = str(ROOT / "packages" / "python" / "src")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, so that no config and no session of the user takes part."""
    home = tmp_path / "home"
    home.mkdir()
    for name in list(os.environ):
        if name.startswith(("XDG_", "LINKSPAN_")) and name != "LINKSPAN_BIN":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LINKSPAN_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return home


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No thread and no child of linkspan outlives a test."""
    before = _left()
    yield
    wait_until(lambda: _left() <= before)


def _left() -> set[object]:
    threads = {it for it in threading.enumerate() if it.name == "linkspan"}
    return threads | set(children("linkspan"))


def wait_until(is_true: object, seconds: float = 10.0) -> None:
    """Wait for what cannot be awaited: the end of a process or a thread of somebody else."""
    assert callable(is_true)
    until = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def children(name: str, of: int | None = None) -> list[int]:
    """The children of a process, by default this one, whose program has this name."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        command, fields = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") :]
        state, parent = fields.split()[1:3]
        if command == name and int(parent) == (of or os.getpid()) and state != "Z":
            found.append(int(stat.parent.name))
    return found


def is_running(pid: int) -> bool:
    """Whether a process is there, and more than a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text[text.rindex(")") :].split()[1] != "Z"
