"""Models and coding agents for AG-UI apps, as agents and as routes of FastAPI or Starlette.

    from linkspan.ag_ui import OpenResponsesAgent, add_openresponses_fastapi_endpoint

    agent = OpenResponsesAgent(base_url="https://api.openai.com/v1", model="gpt-5.5", api_key=key)
    add_openresponses_fastapi_endpoint(app, agent, path="/agent")

The events are made by `linkspan serve`, one private server per process, and go through as they
are. `pip install 'linkspan[ag-ui]'` brings what the routes and `run()` need besides.
"""

from __future__ import annotations

from ._agents import Agent, LinkspanAgent, OpenResponsesAgent
from ._routes import (
    add_linkspan_fastapi_endpoint,
    add_openresponses_fastapi_endpoint,
    create_linkspan_app,
    create_openresponses_app,
)
from ._server import close_all

__all__ = [
    "Agent",
    "LinkspanAgent",
    "OpenResponsesAgent",
    "add_linkspan_fastapi_endpoint",
    "add_openresponses_fastapi_endpoint",
    "close_all",
    "create_linkspan_app",
    "create_openresponses_app",
]
