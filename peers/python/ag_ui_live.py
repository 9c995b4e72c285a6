"""Lets `linkspan.ag_ui` serve models, as agents and through FastAPI, with an endpoint of our own behind.

usage: ag_ui_live.py LINKSPAN FIXTURES [CASE]…

Every event is checked by the types of `ag-ui-protocol`. What is looked at besides is what may be
left behind: servers, threads, connections, keys. Python 3.12 with `ag_ui.txt`.
"""

import asyncio
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from cases import equal, processes_with, run_cases

LINKSPAN, FIXTURES, *ONLY = sys.argv[1:]
KEY = "sk-peers-canary-7f0e3a9b5c1d2e8f4a6b"
# Longer than anything here takes on a busy machine.
PATIENCE = 60.0
N_AT_ONCE = 200

FOLDER = Path(tempfile.mkdtemp(prefix="linkspan-ag-ui-"))
os.environ.update(HOME=str(FOLDER), LINKSPAN_BIN=LINKSPAN, TMPDIR=str(FOLDER))

import uvicorn  # noqa: E402
from ag_ui.core import Event, EventType, RunAgentInput, UserMessage  # noqa: E402
from ag_ui_provider import Provider  # noqa: E402
from fastapi import Depends, FastAPI, HTTPException  # noqa: E402
from linkspan import LinkspanError  # noqa: E402
from linkspan.ag_ui import (  # noqa: E402
    LinkspanAgent,
    OpenResponsesAgent,
    add_linkspan_fastapi_endpoint,
    add_openresponses_fastapi_endpoint,
    close_all,
    create_openresponses_app,
)
from linkspan.ag_ui._http import Address, send  # noqa: E402
from pydantic import TypeAdapter  # noqa: E402
from starlette.applications import Starlette  # noqa: E402

EVENTS = TypeAdapter(Event)
provider = Provider(FIXTURES)
ENDS = {
    "10-failed": "RUN_ERROR",
    "11-error-event-then-failed": "RUN_ERROR",
    "12-error-event-only": "RUN_ERROR",
    "13-truncated": "RUN_ERROR",
}
AGENTS = {
    name: OpenResponsesAgent(
        provider.url(name), model="m", api_key=KEY, name=name, max_retries=0, data_dir=FOLDER / "data"
    )
    for name in [*provider.recordings, "chained", "weather", "unauthorized", "held", "many", "crowd", "pictures"]
}


def request(thread="t", run="r", content="hi", **more):
    messages = [UserMessage(id="u1", role="user", content=content)]
    fields = {"state": {}, "messages": messages, "tools": [], "context": [], "forwarded_props": {}}
    return RunAgentInput(thread_id=thread, run_id=run, **{**fields, **more})


async def run(name, *args, **more):
    return [it async for it in AGENTS[name].run(request(*args, **more))]


def check_stream(events, end="RUN_FINISHED"):
    ends = [it for it in events if it.type in (EventType.RUN_FINISHED, EventType.RUN_ERROR)]
    equal((events[0].type.value, len(ends), events[-1].type.value), ("RUN_STARTED", 1, end))


async def recordings():
    for name in provider.recordings:
        check_stream(await run(name), ENDS.get(name, "RUN_FINISHED"))


async def second_turn():
    check_stream(await run("chained", run="r1"))
    messages = [
        {"id": "u1", "role": "user", "content": "hi"},
        {"id": "a1", "role": "assistant", "content": "Hello, world!"},
        {"id": "u2", "role": "user", "content": "and now"},
    ]
    check_stream(await run("chained", run="r2", messages=messages))
    first, second = provider.requests["chained"]
    told = [(it.get("previous_response_id"), len(it["input"])) for it in (first, second)]
    equal(told, [(None, 1), ("resp_af46aeda41e8cdce", 1)])
    equal(f"authorization: bearer {KEY}" in first["head"].lower(), True)


async def tools():
    tool = {"name": "weather", "description": "tells it", "parameters": {"type": "object", "properties": {}}}
    events = await run("weather", run="r1", tools=[tool])
    check_stream(events)
    starts = [it for it in events if it.type == EventType.TOOL_CALL_START]
    equal([(it.tool_call_id, it.tool_call_name) for it in starts], [("call_1", "weather")])
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages = [
        {"id": "u1", "role": "user", "content": "hi"},
        {"id": "a1", "role": "assistant", "toolCalls": [call]},
        {"id": "t1", "role": "tool", "toolCallId": "call_1", "content": "cold"},
    ]
    check_stream(await run("weather", run="r2", tools=[tool], messages=messages))
    items = [(it["type"], it.get("output")) for it in provider.requests["weather"][1]["input"]]
    equal(items, [("function_call_output", "cold")])


async def pictures():
    picture = {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}}
    check_stream(await run("pictures", content=[{"type": "text", "text": "look"}, picture]))
    kinds = [it["type"] for it in provider.requests["pictures"][0]["input"][0]["content"]]
    equal(kinds, ["input_text", "input_image"])


async def unauthorized():
    events = await run("unauthorized")
    check_stream(events, "RUN_ERROR")
    equal(events[-1].code, "invalid_api_key")


async def refused():
    try:
        await run("chained", thread="")
    except LinkspanError as err:
        equal((err.code, "threadId" in err.message), ("bad_input", True))
    else:
        raise AssertionError("a thread without a name was taken")


async def many_at_once():
    before = time.monotonic()
    runs = (run("many", thread=f"t{n}") for n in range(N_AT_ONCE))
    for events in await asyncio.gather(*runs):
        check_stream(events)
    print(f"{N_AT_ONCE} runs at once: {time.monotonic() - before:.1f} s", file=sys.stderr)


async def child_killed():
    [pid] = servers()
    os.kill(pid, signal.SIGKILL)
    check_stream(await run("many", thread="after"))
    [other] = servers()
    equal(pid == other, False)


async def child_killed_in_a_stream():
    provider.held.clear()
    [pid] = servers()
    stream = AGENTS["held"].run(request(thread="killed"))
    await anext(stream)
    await asyncio.to_thread(provider.held.wait, PATIENCE)
    os.kill(pid, signal.SIGKILL)
    try:
        async for _ in stream:
            pass
    except LinkspanError as err:
        equal(err.code, "connection")
    else:
        raise AssertionError("a stream that was cut off looks whole")
    # What is sent to a server that is about to die may be lost.
    await until(lambda: pid not in servers(), "the end of the server")
    check_stream(await run("many", thread="after that"))


async def late_agent():
    """An agent that is made while the server runs, and one whose name is taken."""
    folder = FOLDER / "data"
    late = OpenResponsesAgent(provider.url("late"), model="m", name="late", data_dir=folder)
    check_stream([it async for it in late.run(request())])
    try:
        OpenResponsesAgent(provider.url("other"), model="m", name="late", data_dir=folder)
    except ValueError as err:
        equal("two agents are called `late`" in str(err), True)
    else:
        raise AssertionError("two agents have one name")
    await until(lambda: len(servers()) == 1, "one server")


async def two_loops():
    def other():
        return asyncio.run(run("many", thread="other loop"))

    ours, theirs = await asyncio.gather(run("many", thread="this loop"), asyncio.to_thread(other))
    check_stream(ours)
    check_stream(theirs)


async def broken_start():
    folder = FOLDER / "file"
    folder.write_text("")
    agent = OpenResponsesAgent(provider.url("x"), model="m", data_dir=folder)
    try:
        await agent.capabilities()
    except LinkspanError as err:
        equal(err.code, "program_ended")
    else:
        raise AssertionError("a server was started in a file")


async def capabilities():
    equal((await AGENTS["many"].capabilities())["tools"]["supported"], True)
    equal(await AGENTS["many"].abort("t0"), False)


async def recorded_engine():
    """An engine that is no model, with settings of the app: those of the client are left out."""
    agent = LinkspanAgent("replay:tools", data_dir=FOLDER / "data")
    mine = request(forwarded_props={"linkspan": {"permissions": "allow"}})
    events = [it async for it in agent.run(mine)]
    check_stream(events)
    notices = [it.value["code"] for it in events if getattr(it, "name", "") == "linkspan.notice"]
    equal(notices, ["settings_left_out"])
    agent = LinkspanAgent("replay:tools", permissions="sometimes", data_dir=FOLDER / "data")
    try:
        [it async for it in agent.run(request(thread="wrong"))]
    except LinkspanError as err:
        equal("`permissions`" in err.message, True)
    else:
        raise AssertionError("settings that are wrong were taken")


@contextlib.contextmanager
def served(app):
    """The app on a port, in a thread with a loop of its own."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, name="uvicorn")
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise AssertionError("uvicorn ended before it listened: its error is on stderr")
            time.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def ask(port, path, body, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("POST", path, body, {"content-type": "application/json", **headers})
    return connection, connection.getresponse()


def body(**fields):
    messages = [{"id": "u1", "role": "user", "content": "hi"}]
    return json.dumps({"threadId": "web", "runId": "r", "messages": messages, **fields})


async def post(port, path, **fields):
    """A run through an app, with the client that the package has for its server; its events."""
    headers = {"content-type": "application/json"}
    response = await send(Address(port=port), "POST", path, headers, body(**fields).encode())
    try:
        *frames, rest = (await response.body()).split(b"\n\n")
    finally:
        response.close()
    equal((response.status, rest), (200, b""))
    data = (b"".join(re.findall(rb"^data: ?(.*)$", it, re.MULTILINE)) for it in frames)
    return [EVENTS.validate_json(it) for it in data if it]


async def streams_of_fastapi():
    """Every recording, and many runs at once, as a client of an app gets them."""
    app = FastAPI()
    for name in [*provider.recordings, "crowd"]:
        add_openresponses_fastapi_endpoint(app, AGENTS[name], f"/{name}")
    with served(app) as port:
        for name in provider.recordings:
            check_stream(await post(port, f"/{name}", threadId="app"), ENDS.get(name, "RUN_FINISHED"))
        began = time.monotonic()
        runs = (post(port, "/crowd", threadId=f"app {n}") for n in range(N_AT_ONCE))
        for events in await asyncio.gather(*runs):
            check_stream(events)
    print(f"{N_AT_ONCE} runs at once through FastAPI: {time.monotonic() - began:.1f} s", file=sys.stderr)


async def fastapi():
    def deny():
        raise HTTPException(403)

    app = FastAPI()
    add_openresponses_fastapi_endpoint(app, AGENTS["many"], path="/agent", tags=["agents"])
    add_openresponses_fastapi_endpoint(app, AGENTS["held"], path="/held")
    add_openresponses_fastapi_endpoint(app, AGENTS["many"], path="/closed", dependencies=[Depends(deny)])
    add_linkspan_fastapi_endpoint(app, LinkspanAgent("replay:tools", data_dir=FOLDER / "data"), "/replay")

    def talk():
        with served(app) as port:
            _, response = ask(port, "/agent", body())
            equal((response.status, response.headers["content-type"]), (200, "text/event-stream"))
            frames = response.read().split(b"\n\n")
            equal((b"RUN_STARTED" in frames[0], b"RUN_FINISHED" in frames[-2]), (True, True))
            ids = [line for line in frames[2].split(b"\n") if line.startswith(b"id: ")]
            # Who comes back with the last id gets the rest.
            _, response = ask(port, "/agent", body(), **{"last-event-id": ids[0][4:].decode()})
            equal(response.read(), b"\n\n".join(frames[3:]))
            proto = "application/vnd.ag-ui.event+proto"
            _, response = ask(port, "/agent", body(runId="p"), accept=proto)
            equal((response.status, response.headers["content-type"]), (200, proto))
            _, response = ask(port, "/agent", "{}")
            message = json.loads(response.read())["error"]["message"]
            equal((response.status, message), (400, "`threadId` is missing"))
            _, response = ask(port, "/replay", body())
            equal((response.status, b"RUN_FINISHED" in response.read()), (200, True))
            _, response = ask(port, "/agent/abort", json.dumps({"threadId": "web"}))
            equal(json.loads(response.read()), {"aborted": False})
            for path in ("/closed", "/closed/abort"):
                equal(ask(port, path, body())[1].status, 403)
            # A client that goes ends its run, and the request behind it, however silent that is.
            provider.gone.clear()
            connection, response = ask(port, "/held", body(threadId="gone"))
            response.readline()
            equal(provider.held.wait(PATIENCE), True)
            response.close()
            connection.close()
            equal(provider.gone.wait(PATIENCE), True)

    await asyncio.to_thread(talk)
    # In the app's own words, for those who read its document.
    equal(sorted(app.openapi()["paths"]["/agent"]["post"]["tags"]), ["agents"])


async def starlette():
    def talk():
        app = Starlette()
        add_openresponses_fastapi_endpoint(app, AGENTS["many"], "/agent")
        for n, it in enumerate((app, create_openresponses_app(AGENTS["many"], "/agent"))):
            with served(it) as port:
                _, response = ask(port, "/agent", body(threadId=f"app {n}"))
                equal((response.status, response.read().count(b"RUN_FINISHED")), (200, 1))
                _, response = ask(port, "/agent/abort", json.dumps({"threadId": "app"}))
                equal(json.loads(response.read()), {"aborted": False})

    await asyncio.to_thread(talk)


async def example_server():
    """The reference server: asked once, then killed."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        environment = {**os.environ, "OPENRESPONSES_URL": provider.url("example"), "OPENRESPONSES_MODEL": "m", "ENGINES": "replay:tools"}
        environment["LINKSPAN_AG_UI_TEST"] = "app"
        app = subprocess.Popen(
            [sys.executable, "-m", "example_server", "--port", "0"],
            cwd=Path(__file__).parents[2] / "examples/ag-ui-fastapi",
            env=environment, stderr=subprocess.PIPE, text=True,
        )
        said = ""
        while not (found := re.search(r"running on http://127.0.0.1:(\d+)", said)):
            line = app.stderr.readline()
            if not line:
                raise AssertionError(said)
            said += line
        port = int(found[1])
        for path in ("/custom", "/agent/replay:tools"):
            _, response = ask(port, path, body(threadId=str(how)))
            equal((response.status, response.read().count(b"RUN_FINISHED")), (200, 1))
        children = processes_with("LINKSPAN_AG_UI_TEST=app") - {app.pid}
        equal(len(children) >= 2, True)
        app.send_signal(how)
        app.wait(PATIENCE)
        app.stderr.close()
        await until(lambda: not processes_with("LINKSPAN_AG_UI_TEST=app"), "the end of the app's servers")


async def key_is_hidden():
    [pid] = servers()
    seen = [Path(f"/proc/{pid}/cmdline").read_bytes()]
    seen += [it.read_bytes() for it in FOLDER.rglob("*") if it.is_file()]
    equal([KEY.encode() in it for it in seen].count(True), 0)


async def nothing_left():
    close_all()
    equal(servers(), [])
    await until(lambda: names() <= {"MainThread", "provider"}, "the end of all threads but ours")
    equal([it.name for it in FOLDER.iterdir() if it.suffix in (".sock", ".toml")], [])


def names():
    # Those of `asyncio.to_thread` are this test's own.
    return {it.name for it in threading.enumerate() if not it.name.startswith("asyncio_")}


async def until(is_true, what):
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}: {servers()} {names()}")
        await asyncio.sleep(0.02)


def servers():
    """The servers of the models, which are children of this process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"serve" in words and any(it.endswith(b".toml") for it in words):
                found.append(int(folder.name))
    return found


CASES = [
    recordings, second_turn, tools, pictures, unauthorized, refused, many_at_once, child_killed,
    child_killed_in_a_stream, late_agent, two_loops, broken_start, capabilities, recorded_engine, fastapi,
    streams_of_fastapi, starlette, example_server, key_is_hidden, nothing_left,
]


try:
    n_failed = run_cases([(it.__name__, it) for it in CASES], 2 * PATIENCE, ONLY)
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
sys.exit(n_failed != 0)
