"""LiteLLM's proxy on a free port of loopback: an Open Responses server that is not ours.

    LITELLM_MASTER_KEY=KEY python litellm_proxy.py CONFIG

Its own command line wants more packages than it uses here, and a port that is known beforehand.
"""

import os
import socket
import sys

# No list of prices from the network, and nobody told that it runs.
os.environ.update(
    CONFIG_FILE_PATH=sys.argv[1],
    LITELLM_LOCAL_MODEL_COST_MAP="True",
    LITELLM_TELEMETRY="False",
    NO_DOCS="True",
)

import uvicorn  # noqa: E402
from litellm.proxy.proxy_server import app  # noqa: E402

listener = socket.create_server(("127.0.0.1", 0))
print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
config = uvicorn.Config(app, loop="asyncio", log_level="warning")
uvicorn.Server(config).run(sockets=[listener])
