"""What FastAPI adds to a run on the server alone, measured in one go: one of each in turn.

usage: ag_ui_bench.py LINKSPAN FIXTURES [RUNS]

Prints the median and the 95th percentile of both, and the ratio of the medians. On a busy machine a
measurement may go wrong: one that misses the goal is made again, and fails the third time.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GOAL = 1.3
N_GOES = 3
# Longer than a run takes on a busy machine.
PATIENCE = 60.0
# The first runs load and compile.
N_WARM = 10


def serve(url, folder):
    """The app, as a process of its own; says where it and the server behind it are."""
    import uvicorn
    from linkspan.ag_ui import OpenResponsesAgent, create_openresponses_app

    agent = OpenResponsesAgent(url, model="m", data_dir=folder)

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            process = await agent._server.process()
            port = self.servers[0].sockets[0].getsockname()[1]
            print(json.dumps({"port": port, "path": process.address.path}), flush=True)

    app = create_openresponses_app(agent, "/ag-ui/responses:default")
    Server(uvicorn.Config(app, port=0, log_level="warning")).run()


def run(connection, thread):
    """One run on a connection of its own; the seconds it took."""
    message = {"id": "u1", "role": "user", "content": "hi"}
    body = json.dumps({"threadId": thread, "runId": "r", "messages": [message]})
    head = "POST /ag-ui/responses:default?on_disconnect=abort HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
    began = time.perf_counter()
    with connection() as stream:
        stream.settimeout(PATIENCE)
        stream.sendall(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
        answer = b""
        while piece := stream.recv(1 << 16):
            answer += piece
    took = time.perf_counter() - began
    assert answer.count(b"RUN_FINISHED") == 1, answer
    return took


def main(linkspan, fixtures, n_runs="200"):
    from ag_ui_provider import Provider

    provider = Provider(fixtures)
    with tempfile.TemporaryDirectory(prefix="linkspan-bench-") as folder:
        environment = {**os.environ, "LINKSPAN_BIN": linkspan, "HOME": folder, "TMPDIR": folder}
        words = [sys.executable, __file__, "--serve", provider.url("bench"), str(Path(folder, "data"))]
        app = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE)
        try:
            where = app.stdout.readline()
            if not where:
                sys.exit("the app ended before it listened: its error is above")
            return any(measure(json.loads(where), int(n_runs), go) <= GOAL for go in range(N_GOES))
        finally:
            app.terminate()
            app.wait()


def measure(where, n_runs, go):
    """Some runs in each way, in turn; the ratio of their medians."""

    def server():
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(where["path"])
        return stream

    def fastapi():
        return socket.create_connection(("127.0.0.1", where["port"]))

    ways = {"server alone": server, "through FastAPI": fastapi}
    times = {name: [] for name in ways}
    for n in range(n_runs + N_WARM):
        for name, connection in ways.items():
            took = run(connection, f"{go} {name} {n}")
            if n >= N_WARM:
                times[name].append(took * 1000)
    medians = []
    for name, taken in times.items():
        medians.append(statistics.median(taken))
        p95 = statistics.quantiles(taken, n=20)[-1]
        print(f"{name:<16} {medians[-1]:>7.2f} ms   p95 {p95:>7.2f} ms")
    ratio = medians[1] / medians[0]
    print(f"ratio            {ratio:>7.2f}      (goal at most {GOAL})", flush=True)
    return ratio


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(*sys.argv[2:])
    else:
        sys.exit(0 if main(*sys.argv[1:]) else 1)
