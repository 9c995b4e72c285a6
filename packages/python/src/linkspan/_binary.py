"""Finds the program that this package drives.

The wheel carries it as a script, so it belongs to the package and is looked for there before the
`PATH`: an older `linkspan` of the machine must not win over the one that came with the package.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from ._errors import LinkspanError

_NAME = "linkspan.exe" if os.name == "nt" else "linkspan"


def binary_path() -> str:
    """Return the path of the `linkspan` program.

    The environment variable `LINKSPAN_BIN` comes first, then the program that was installed with
    this package, then the `PATH`. Raises `LinkspanError` with the code `no_program` if there is
    none.
    """
    named = os.environ.get("LINKSPAN_BIN")
    if named:
        found = shutil.which(named)
        if found is None:
            raise LinkspanError(
                "no_program",
                f"`{named}`, which LINKSPAN_BIN names, is no program that can be started",
                "correct LINKSPAN_BIN, or unset it to use the program of the package",
            )
        return os.path.abspath(found)
    for path in _installed():
        if os.access(path, os.X_OK) and path.is_file():
            return os.path.abspath(path)
    found = shutil.which(_NAME)
    if found is None:
        raise LinkspanError(
            "no_program",
            "the program `linkspan` is neither in this Python environment nor on the PATH",
            "install the wheel with `pip install linkspan`, or set LINKSPAN_BIN to the program",
        )
    return os.path.abspath(found)


def _installed() -> Iterator[Path]:
    """Yield where an installer may have put the program of this package, the surest place first."""
    modules = Path(__file__).parent.parent
    # `pip install --target DIR` puts scripts into DIR/bin, and its RECORD names another folder.
    yield modules / ("Scripts" if os.name == "nt" else "bin") / _NAME
    # Another installation of the same Python has its own, perhaps an older one.
    if str(modules) in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        yield Path(sysconfig.get_path("scripts"), _NAME)
    # `--user`, `--prefix`, `--editable`: the record of the distribution says where its files are.
    try:
        files = importlib.metadata.distribution("linkspan").files
    except importlib.metadata.PackageNotFoundError:
        return
    for file in files or ():
        if file.name == _NAME:
            yield Path(str(file.locate()))
