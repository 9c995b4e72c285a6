"""An endpoint of models for the tests of `linkspan.ag_ui`: it plays recordings, and fails in every way.

What it does is named by the first part of the path: the name of a recording, or one of `SPECIAL`.
"""

import asyncio
import json
import threading
from pathlib import Path

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


class Provider:
    """A server in a thread of its own."""

    def __init__(self, fixtures):
        self.recordings = {it.stem: it.read_bytes() for it in sorted(Path(fixtures).glob("[0-9][0-9]-*.sse"))}
        self.requests = {}
        # Set when a client has gone before its answer was over.
        self.gone = threading.Event()
        self.held = threading.Event()
        ready = threading.Event()
        threading.Thread(target=self._run, args=[ready], name="provider", daemon=True).start()
        ready.wait()

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/{name}"

    def _run(self, ready):
        async def serve():
            server = await asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=512)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await server.serve_forever()

        asyncio.run(serve())

    async def _answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        name = head.split(" ")[1].split("/")[1]
        length = next(it for it in head.lower().split("\r\n") if it.startswith("content-length:"))
        body = json.loads(await reader.readexactly(int(length.split(":")[1])))
        seen = self.requests.setdefault(name, [])
        seen.append({"head": head, **body})
        if name == "unauthorized":
            self._refuse(writer, "401 Unauthorized", "invalid_api_key")
        elif name == "held":
            writer.write(HEAD + self.recordings["01-text"][:400])
            await writer.drain()
            self.held.set()
            await reader.read()
            self.gone.set()
        elif name == "weather":
            writer.write(HEAD + (weather() if len(seen) == 1 else self.recordings["01-text"]))
        else:
            writer.write(HEAD + self.recordings.get(name, self.recordings["01-text"]))
        await writer.drain()
        writer.close()

    def _refuse(self, writer, status, code):
        body = json.dumps({"error": {"code": code, "message": "no", "type": "error", "param": None}})
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write((head + body).encode())


def weather():
    """A call of a tool of the application."""
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": "{}", "status": "completed"}
    response = {"id": "resp_w", "object": "response", "model": "m"}
    events = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": "", "status": "in_progress"}},
        {"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "fc_1", "arguments": "{}"},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**response, "status": "completed", "output": [item]}},
    ]
    frames = (f"event: {it['type']}\ndata: {json.dumps({**it, 'sequence_number': n})}\n\n" for n, it in enumerate(events))
    return "".join(frames).encode()
