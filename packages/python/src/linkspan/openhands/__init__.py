"""Any agent that linkspan runs, as an agent of the OpenHands SDK.

`ClaudeCodeAgent` and `LinkspanAgent` take the place of the SDK's own agent in a `Conversation`.
Needs `pip install 'linkspan[openhands]'`, and Python 3.12 as the SDK does. Importing this module
registers its classes with the SDK, which is what reading a stored conversation needs.
"""

from __future__ import annotations

from .._errors import needs

with needs("openhands"):
    # Before the SDK: its lazy imports have deadlocked the other way round.
    import litellm  # noqa: F401

    from ._agent import ClaudeCodeAgent, LinkspanAgent
    from ._tools import ExternalToolAction, ExternalToolObservation

__all__ = [
    "ClaudeCodeAgent",
    "ExternalToolAction",
    "ExternalToolObservation",
    "LinkspanAgent",
]
