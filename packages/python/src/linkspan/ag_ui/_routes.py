"""Agents as routes of FastAPI or Starlette.

Neither of the two is imported before a route is added: an app that uses `Agent.run` needs none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._errors import needs

if TYPE_CHECKING:
    from fastapi import APIRouter, FastAPI
    from starlette.applications import Starlette

    from ._agents import Agent, LinkspanAgent, OpenResponsesAgent

# The FastAPI route arguments that apply to the two other routes as well.
_SHARED = ("dependencies", "tags", "include_in_schema", "deprecated")


def add_openresponses_fastapi_endpoint(
    app: FastAPI | APIRouter | Starlette,
    agent: OpenResponsesAgent,
    path: str = "/",
    **kwargs: Any,
) -> None:
    """Add `POST path` to an app; the keywords go to `app.post`.

    `POST path/abort` and `GET path/capabilities` come with it, as on `linkspan serve`. No token is
    checked: that is up to the app, as with `dependencies=[Depends(…)]`.
    """
    _add(app, agent, path, kwargs)


def add_linkspan_fastapi_endpoint(
    app: FastAPI | APIRouter | Starlette,
    agent: LinkspanAgent,
    path: str = "/",
    **kwargs: Any,
) -> None:
    """Add `POST path` to an app, for an engine; as `add_openresponses_fastapi_endpoint`."""
    _add(app, agent, path, kwargs)


def create_openresponses_app(agent: OpenResponsesAgent, path: str = "/") -> FastAPI:
    """Return an app with nothing but this agent."""
    with needs("ag-ui"):
        from fastapi import FastAPI

    app = FastAPI()
    add_openresponses_fastapi_endpoint(app, agent, path)
    return app


def create_linkspan_app(agent: LinkspanAgent, path: str = "/") -> FastAPI:
    """Return an app with nothing but this agent."""
    with needs("ag-ui"):
        from fastapi import FastAPI

    app = FastAPI()
    add_linkspan_fastapi_endpoint(app, agent, path)
    return app


def _add(app: Any, agent: Agent, path: str, kwargs: dict[str, Any]) -> None:
    with needs("ag-ui"):
        from . import _handlers

    below = path.rstrip("/")
    shared = {key: kwargs[key] for key in _SHARED if key in kwargs}
    routes = [
        ("POST", path, _handlers.run(agent), kwargs),
        ("POST", f"{below}/abort", _handlers.call(agent, "/abort"), shared),
        ("GET", f"{below}/capabilities", _handlers.call(agent, "/capabilities"), shared),
    ]
    for method, place, handler, words in routes:
        if hasattr(app, "add_api_route"):
            app.add_api_route(place, handler, methods=[method], **{"response_model": None, **words})
        elif words:
            raise TypeError(f"a Starlette app takes no {', '.join(words)}")
        else:
            app.add_route(place, handler, methods=[method])
