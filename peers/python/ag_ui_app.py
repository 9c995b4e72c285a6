"""A FastAPI app with every engine of a config as a route: what stands in for `linkspan serve` in a test.

usage: ag_ui_app.py CONFIG DATA_DIR

The routes are those of the server (`/ag-ui/responses:NAME`, `/ag-ui/claude`), so that its clients
can be pointed at either. Says `listening on URL` on stderr.
"""

import contextlib
import os
import sys
import tomllib
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from linkspan.ag_ui import (
    LinkspanAgent,
    OpenResponsesAgent,
    add_linkspan_fastapi_endpoint,
    add_openresponses_fastapi_endpoint,
    close_all,
)


@contextlib.asynccontextmanager
async def lifespan(app):
    yield
    close_all()


def create_app(config, data_dir):
    app = FastAPI(lifespan=lifespan)
    engines = tomllib.loads(Path(config).read_text())["engines"]
    for name, keys in engines.pop("responses", {}).items():
        keys["api_key"] = os.environ[keys.pop("api_key_env")]
        # As without `on_disconnect` on the server: some clients of the test come back.
        agent = OpenResponsesAgent(name=name, data_dir=data_dir, on_disconnect="detach", **keys)
        add_openresponses_fastapi_endpoint(app, agent, f"/ag-ui/{agent.engine}")
    for name in engines:
        agent = LinkspanAgent(name, config=config, data_dir=data_dir)
        add_linkspan_fastapi_endpoint(app, agent, f"/ag-ui/{name}")
    return app


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"listening on http://127.0.0.1:{port}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    app = create_app(*sys.argv[1:])
    Server(uvicorn.Config(app, port=0, log_level="warning")).run()
