"""Any coding agent in any protocol, from Python.

A thin, typed shell over the program `linkspan`, which comes with the package: it starts agents,
reads what they do and stores it; this package starts the program and gives its lines types.
"""

from __future__ import annotations

from ._binary import binary_path
from ._client import AsyncClient, Client
from ._conversation import AsyncConversation, Conversation, arun, run
from ._convert import convert, events
from ._errors import LinkspanError, RunFailed
from ._options import Decision, Permissions, RunOptions
from ._run import AsyncRun, Run
from .types import Event

__all__ = [
    "AsyncClient",
    "AsyncConversation",
    "AsyncRun",
    "Client",
    "Conversation",
    "Decision",
    "Event",
    "LinkspanError",
    "Permissions",
    "Run",
    "RunFailed",
    "RunOptions",
    "arun",
    "binary_path",
    "convert",
    "events",
    "run",
]
