"""A reference server: models and coding agents for AG-UI apps, with FastAPI.

usage: python -m example_server [--port PORT]

Each agent is a route, if the environment has what it needs:

/openai         a model of OpenAI: OPENAI_API_KEY
/azure          a model of Azure OpenAI: AZURE_OPENAI_ENDPOINT, _API_KEY, _DEPLOYMENT
/huggingface    a model of Hugging Face: HF_TOKEN
/openclaw       an agent of OpenClaw: OPENCLAW_URL, and OPENCLAW_TOKEN if it wants one
/custom         any other endpoint: OPENRESPONSES_URL, _MODEL, and _API_KEY if it wants one
/agent/ENGINE   a coding agent, for each engine in ENGINES, such as claude,codex

`GET /health` says which of them there are. No token is checked: it is for this machine alone.
`pip install 'linkspan[ag-ui]' uvicorn`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from linkspan.ag_ui import (
    LinkspanAgent,
    OpenResponsesAgent,
    add_linkspan_fastapi_endpoint,
    add_openresponses_fastapi_endpoint,
)


def models(env: Mapping[str, str]) -> list[OpenResponsesAgent]:
    """Return the models that the environment has what it takes for."""
    found: list[OpenResponsesAgent] = []
    if key := env.get("OPENAI_API_KEY"):
        url = "https://api.openai.com/v1"
        found.append(OpenResponsesAgent(url, model="gpt-5.5", api_key=key, name="openai"))
    if azure_url := env.get("AZURE_OPENAI_ENDPOINT"):
        azure = {
            "api_version": env.get("AZURE_OPENAI_API_VERSION", "2025-04-01-preview"),
            "deployment_name": env["AZURE_OPENAI_DEPLOYMENT"],
        }
        key = env["AZURE_OPENAI_API_KEY"]
        found.append(OpenResponsesAgent(azure_url, api_key=key, azure=azure, name="azure"))
    if key := env.get("HF_TOKEN"):
        url = "https://router.huggingface.co/v1"
        found.append(OpenResponsesAgent(url, api_key=key, name="huggingface"))
    if claw_url := env.get("OPENCLAW_URL"):
        key = env.get("OPENCLAW_TOKEN")
        openclaw = OpenResponsesAgent(claw_url, api_key=key, provider="openclaw", name="openclaw")
        found.append(openclaw)
    if own_url := env.get("OPENRESPONSES_URL"):
        model, key = env["OPENRESPONSES_MODEL"], env.get("OPENRESPONSES_API_KEY")
        found.append(OpenResponsesAgent(own_url, model=model, api_key=key, name="custom"))
    return found


def create_app(env: Mapping[str, str] = os.environ) -> FastAPI:
    """Return the app for this environment."""
    app = FastAPI(title="AG-UI with linkspan")
    # For development: an app of its own port on this machine.
    app.add_middleware(
        CORSMiddleware,
        allow_origin_regex=r"http://(localhost|127\.0\.0\.1)(:\d+)?",
        allow_methods=["*"],
        allow_headers=["*"],
    )
    routes: list[str] = []
    for model in models(env):
        routes.append(f"/{model.engine.partition(':')[2]}")
        add_openresponses_fastapi_endpoint(app, model, routes[-1])
    for engine in filter(None, env.get("ENGINES", "").split(",")):
        routes.append(f"/agent/{engine}")
        add_linkspan_fastapi_endpoint(app, LinkspanAgent(engine), routes[-1])

    @app.get("/health")
    async def health() -> dict[str, object]:
        return {"status": "ok", "agents": routes}

    return app
