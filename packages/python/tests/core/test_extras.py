"""Modules that need more than this package say so, and how to get it."""

from __future__ import annotations

import subprocess
import sys

import pytest

APP = "a.create_openresponses_app(a.OpenResponsesAgent('http://127.0.0.1', model='m'))"


@pytest.mark.parametrize(
    ("missing", "code", "said"),
    [
        (
            "litellm",
            "import linkspan.openhands",
            "`linkspan.openhands` needs openhands-sdk 1.58 or newer, and Python 3.12 or newer:"
            " `pip install 'linkspan[openhands]'`",
        ),
        (
            "msgspec",
            "import linkspan.takopi",
            "`linkspan.takopi` needs takopi 0.23 or newer, and Python 3.14 or newer:"
            " `pip install 'linkspan[takopi]'`",
        ),
        (
            "fastapi",
            f"import linkspan.ag_ui as a; {APP}",
            "`linkspan.ag_ui` needs ag-ui-protocol 1.0 or newer, and FastAPI:"
            " `pip install 'linkspan[ag-ui]'`",
        ),
    ],
)
def test_a_missing_package_is_named_with_its_extra(missing: str, code: str, said: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; {code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith(f"ImportError: {said} (")
