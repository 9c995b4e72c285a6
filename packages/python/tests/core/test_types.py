"""The types are those of the schema, and checkers hold users and the package itself to them."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

from conftest import ROOT

import linkspan
from linkspan.types import Event

PACKAGE = ROOT / "packages" / "python"

# `example.py` is right; each of these has one wrong line.
WRONG = {("wrong_key.py", 10), ("wrong_option.py", 6), ("wrong_type.py", 9)}

# Their packages are not in this environment; the peers that have them check these.
ELSEWHERE = r"/(takopi\.py|ag_ui/)"


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=PACKAGE, capture_output=True, text=True, check=False
    )


def test_they_are_what_the_script_writes() -> None:
    done = run("generate_types.py", "--check")
    assert (done.returncode, done.stdout) == (0, "")


def test_every_event_of_the_schema_has_a_type() -> None:
    schema = json.loads((ROOT / "docs" / "linkspan.schema.json").read_text())
    wanted = [it["properties"]["type"]["const"] for it in schema["oneOf"]]
    found = [get_args(get_type_hints(it)["type"])[0] for it in get_args(Event)]
    assert found == wanted


def test_every_public_name_is_documented() -> None:
    things = {it: getattr(linkspan, it) for it in linkspan.__all__}
    real = {it: at for it, at in things.items() if inspect.isclass(at) or inspect.isfunction(at)}
    assert [it for it, at in real.items() if not inspect.getdoc(at)] == []
    assert len(real) > 10


def test_mypy_finds_what_is_wrong_and_nothing_else() -> None:
    flags = ["--strict", "--no-error-summary", "--exclude", ELSEWHERE]
    found: set[tuple[str, int]] = set()
    # The core works with 3.10; the SDK of OpenHands needs a newer Python.
    for version, what in (("3.10", "tests/typed"), ("3.12", "src/linkspan")):
        done = run("-m", "mypy", *flags, "--python-version", version, what)
        found |= {
            (Path(file).name, int(line))
            for file, line in re.findall(r"^(.*?):(\d+): error", done.stdout, re.MULTILINE)
        }
    assert found == WRONG


def test_pyright_finds_what_is_wrong_and_nothing_else() -> None:
    done = run("-m", "pyright", "--pythonpath", sys.executable, "--outputjson")
    found = {
        (Path(it["file"]).name, it["range"]["start"]["line"] + 1)
        for it in json.loads(done.stdout)["generalDiagnostics"]
    }
    assert found == WRONG
