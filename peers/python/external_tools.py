"""The two classes a consumer registers to load the `external` profile.

OpenHands never shipped them; they follow the proposal that named them. The base
Observation owns `content` and `is_error`, so neither is declared again, and they must
stand at module level: the SDK refuses local classes.
"""

from typing import Any

from openhands.sdk.tool.schema import Action, Observation


class ExternalToolAction(Action):
    tool: str
    args: dict[str, Any]


class ExternalToolObservation(Observation):
    tool: str
    result: str | list[dict[str, Any]] | None = None
