"""Any coding agent in any protocol, from Python.

A thin, typed shell over the program `linkspan`, which comes with the package.
"""

from __future__ import annotations

from ._binary import binary_path
from ._errors import LinkspanError, RunFailed

__all__ = [
    "LinkspanError",
    "RunFailed",
    "binary_path",
]
