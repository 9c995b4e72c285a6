"""Where the program is looked for."""

from __future__ import annotations

import importlib.metadata
import os
import sysconfig
from pathlib import Path

import pytest

import linkspan
from linkspan import _binary


def program(folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "linkspan"
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    return str(made)


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No program is anywhere, and the package is not installed."""

    def distribution(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.delenv("LINKSPAN_BIN", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    paths = {"scripts": "scripts", "purelib": "target", "platlib": "other"}
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / paths[name]))
    monkeypatch.setattr(_binary, "__file__", str(tmp_path / "target/linkspan/_binary.py"))
    monkeypatch.setattr(importlib.metadata, "distribution", distribution)


def test_there_is_none() -> None:
    with pytest.raises(linkspan.LinkspanError) as none:
        linkspan.binary_path()
    assert none.value.code == "no_program"
    assert none.value.message == (
        "the program `linkspan` is neither in this Python environment nor on the PATH"
    )
    with pytest.raises(linkspan.LinkspanError, match="pip install linkspan"):
        linkspan.run("look")


def test_nearer_places_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Distribution:
        files = (importlib.metadata.PackagePath("../../../bin/linkspan"),)

    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: Distribution())
    monkeypatch.setattr(
        importlib.metadata.PackagePath, "locate", lambda it: tmp_path / "a/b/c" / it, raising=False
    )
    found = []
    for folder in ("path", "bin", "scripts", "target/bin"):
        wanted = program(tmp_path / ("a/b/c/../../../bin" if folder == "bin" else folder))
        assert linkspan.binary_path() == os.path.abspath(wanted)
        found.append(linkspan.binary_path())
    assert len(set(found)) == 4
    named = program(tmp_path / "named")
    monkeypatch.setenv("LINKSPAN_BIN", named)
    assert linkspan.binary_path() == named


def test_scripts_of_another_installation_are_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "scripts")
    wanted = program(tmp_path / "path")
    monkeypatch.setattr(_binary, "__file__", str(tmp_path / "user/linkspan/_binary.py"))
    assert linkspan.binary_path() == wanted


def test_a_file_that_is_no_program_is_passed_over(tmp_path: Path) -> None:
    Path(program(tmp_path / "scripts")).chmod(0o644)
    (tmp_path / "target/bin/linkspan").mkdir(parents=True)
    wanted = program(tmp_path / "path")
    assert linkspan.binary_path() == wanted


def test_a_wrong_name_in_the_environment_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKSPAN_BIN", "/nowhere/linkspan")
    with pytest.raises(linkspan.LinkspanError) as wrong:
        linkspan.binary_path()
    assert wrong.value.message == (
        "`/nowhere/linkspan`, which LINKSPAN_BIN names, is no program that can be started"
    )


def test_a_program_of_another_version_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Path(program(tmp_path / "named"))
    monkeypatch.setenv("LINKSPAN_BIN", str(other))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    ready = '{"type":"bridge.ready","version":"9.1.0","protocol":9,"pid":1}'
    other.write_text(f"#!/bin/sh\necho '{ready}'\nexec cat\n")
    with pytest.raises(linkspan.LinkspanError) as wrong:
        linkspan.run("look")
    assert (wrong.value.code, wrong.value.message) == (
        "protocol",
        "linkspan 9.1.0 speaks protocol 9, this package speaks protocol 1",
    )
    other.write_text("#!/bin/sh\necho 'error: unrecognized subcommand' >&2\nexit 2\n")
    with pytest.raises(linkspan.LinkspanError) as wrong:
        linkspan.run("look")
    assert (wrong.value.code, wrong.value.message) == (
        "program_ended",
        "`linkspan stdio` ended by itself with exit status 2: error: unrecognized subcommand",
    )
    other.write_text("#!/bin/sh\necho hello\nexec cat\n")
    with pytest.raises(linkspan.LinkspanError, match="not JSON"):
        linkspan.run("look")
