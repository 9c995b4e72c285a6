"""Uses that a checker of types must refuse."""

from linkspan.ag_ui import LinkspanAgent, OpenResponsesAgent

OpenResponsesAgent("https://example.com", models="m")
LinkspanAgent("claude", on_disconnect="leave")
