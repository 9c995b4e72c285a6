"""Drives a live ACP agent with the Python client, PyPI `agent-client-protocol`.

usage: acp_live.py [--selftest] PLAN COMMAND...

The same as `js/acp_live.mjs`, shorter, as seen by the other client: its models refuse what they do not
know, and it complains to its log, which has to stay empty. The agent is started in the current folder,
which has to be empty. Closes with `N passed, M failed`.
"""

import asyncio
import json
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    Implementation,
    RequestPermissionResponse,
)

SELFTEST = Path(__file__).parent.parent / "selftest" / "acp_live"
# A real agent on a busy machine takes seconds to start.
MAX_SILENCE = 120
FINAL = ("completed", "failed")
# The self-test's faults that only a client with the whole list of cases can see.
UNSEEN = ("words", "exit")
# One line may hold a whole file.
MAX_LINE = 64 * 1024 * 1024


class Rejected(Exception):
    """Says why a case failed."""


class Complaints(logging.Handler):
    """What the client says to its log."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = []

    def emit(self, record):
        error = record.exc_info and record.exc_info[1]
        self.said.append(f"client: {record.getMessage()} {error or ''}")


class Editor:
    """The client's side of the connection."""

    def __init__(self):
        self.updates = []
        self.asks = []
        self.choose = "allow_once"

    def on_connect(self, conn):
        pass

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update)

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asks.append(tool_call)
        option = next(it for it in options if it.kind == self.choose)
        outcome = AllowedOutcome(outcome="selected", option_id=option.option_id)
        return RequestPermissionResponse(outcome=outcome)

    async def ext_method(self, method, params):
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method, params):
        raise RequestError.method_not_found(method)


class Session:
    """One session, case by case; what a case finds is used by the next."""

    def __init__(self, agent, editor):
        self.agent = agent
        self.editor = editor
        self.id = None

    async def initialize(self):
        answer = await self.agent.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(),
            client_info=Implementation(name="peer", version="1"),
        )
        version = answer.protocol_version
        check(version == PROTOCOL_VERSION, f"version {version} is not what was asked for")
        check(answer.agent_info, "it does not say what it is")
        check(answer.agent_capabilities.load_session, "it cannot load sessions")

    async def open(self):
        self.id = (await self.agent.new_session(cwd=os.getcwd(), mcp_servers=[])).session_id

    async def turn(self, text, stop, meanwhile=None):
        first = len(self.editor.updates)
        asked = len(self.editor.asks)
        prompt = self.agent.prompt(session_id=self.id, prompt=[text_block(text)])
        prompt = asyncio.ensure_future(prompt)
        if meanwhile:
            await meanwhile(lambda: self.editor.updates[first:])
            await self.agent.cancel(session_id=self.id)
        reason = (await prompt).stop_reason
        check(reason == stop, f"{reason} where {stop} is due")
        updates = self.editor.updates[first:]
        calls = {}
        for it in updates:
            if getattr(it, "tool_call_id", None) and it.status:
                calls[it.tool_call_id] = it.status
        for call, status in calls.items():
            check(status in FINAL, f"{call} is still {status} when the turn ends")
        return list(calls.values()), updates, len(self.editor.asks) - asked

    async def is_listed(self):
        sessions = (await self.agent.list_sessions(cwd=os.getcwd())).sessions
        found = [it for it in sessions if it.session_id == self.id]
        check(found, "the session is not in the list")
        check(found[0].title, "the session has no title")

    async def close(self):
        await self.agent.close_session(session_id=self.id)

    async def load(self, session_id):
        self.id = session_id
        await self.agent.load_session(cwd=os.getcwd(), session_id=session_id, mcp_servers=[])


def check(holds, reason):
    if not holds:
        raise Rejected(reason)


def said(updates, kind="agent_message_chunk"):
    return "".join(it.content.text for it in updates if it.session_update == kind)


def output(updates):
    """What the calls that are completed show, fences and space around it aside."""
    done = [it for it in updates if getattr(it, "status", None) == "completed"]
    return "".join(at.content.text for it in done for at in it.content or []).strip("`\n ")


def seen(updates):
    """What was said and done, in order; the user's words and what is about the session aside."""
    shown = []
    for it in updates:
        if it.session_update in ("agent_message_chunk", "agent_thought_chunk"):
            if shown and shown[-1][0] == it.session_update:
                shown[-1][1] += it.content.text
            else:
                shown.append([it.session_update, it.content.text])
        elif getattr(it, "tool_call_id", None):
            shown.append([it.session_update, it.model_dump_json(exclude_none=True)])
    return shown


async def until(what, holds):
    for _ in range(MAX_SILENCE * 20):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise Rejected(f"waited in vain for {what}")


def lane(name):
    return f"please [[lane:{name}]]"


async def allowed(session):
    calls, updates, n_asks = await session.turn(lane("allow"), "end_turn")
    check(n_asks == 1, f"{n_asks} permissions were asked for, not one")
    check(calls == ["completed"], f"the calls are {calls}")
    check(Path("allowed").exists(), "nothing was written, although it was allowed")
    progress = [it.status for it in updates if getattr(it, "tool_call_id", None)]
    check("in_progress" in progress, f"the call was never in progress: {progress}")
    check(output(updates) == "yes", f"the call shows {output(updates)!r}")
    check("It is written" in said(updates), f"it says {said(updates)!r}")


async def denied(session):
    session.editor.choose = "reject_once"
    calls, _, _ = await session.turn(lane("deny"), "end_turn")
    session.editor.choose = "allow_once"
    check(not Path("denied").exists(), "it was written, although it was denied")
    check(calls == ["failed"], f"the calls are {calls}")


async def text_cancelled(session):
    async def told(updates):
        await until("a text", lambda: "tick" in said(updates()))

    await session.turn(lane("text"), "cancelled", told)


async def tool_cancelled(session):
    async def begun(_):
        await until("the tool", Path("begun").exists)

    calls, _, _ = await session.turn(lane("tool"), "cancelled", begun)
    check(calls == ["failed"], f"the calls are {calls}")
    check(not Path("ended").exists(), "the tool went on")


async def goes_on(session):
    _, updates, _ = await session.turn(lane("after"), "end_turn")
    check(said(updates) == "Still here.", f"it says {said(updates)!r}")


async def answered(session):
    calls, updates, _ = await session.turn("go", "end_turn")
    check(calls, "no tool was called")
    check(said(updates), "nothing was said")


PLANS = {
    "model": {
        "a permission is allowed": allowed,
        "a permission is denied": denied,
        "a text is cancelled": text_cancelled,
        "a tool is cancelled": tool_cancelled,
        "the session goes on": goes_on,
    },
    "replay": {"a prompt is answered": answered},
}


async def run(cases, command):
    """Runs a plan, in two processes; the reasons of the cases that failed, and how many there were."""
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    failed = []
    n_cases = 0

    async def attempt(name, op):
        nonlocal n_cases
        n_cases += 1
        try:
            await asyncio.wait_for(op(), 2 * MAX_SILENCE)
        except Exception as err:
            failed.append(f"{name}: {err or type(err).__name__}")

    # The client would otherwise keep most of the environment from the agent.
    options = {"env": dict(os.environ), "cwd": os.getcwd(), "transport_kwargs": {"limit": MAX_LINE}}
    first = Editor()
    async with spawn_agent_process(first, *command, **options) as (agent, _):
        session = Session(agent, first)
        await attempt("initialize", session.initialize)
        await attempt("a session is made", session.open)
        for name, case in cases.items():
            await attempt(name, lambda case=case: case(session))
        await attempt("the session is listed", session.is_listed)
        await attempt("the session is closed", session.close)
        session_id = session.id
    second = Editor()
    async with spawn_agent_process(second, *command, **options) as (agent, _):
        session = Session(agent, second)
        await attempt("initialize again", session.initialize)

        async def loaded():
            await session.load(session_id)
            before, after = seen(first.updates), seen(second.updates)
            pairs = zip(before + [None], after + [None], strict=False)
            differs = [f"{a} is now {b}" for a, b in pairs if a != b]
            check(before == after, f"loaded differently: {differs[:1]}")

        await attempt("the session is loaded as it was seen", loaded)
    logging.getLogger().removeHandler(complaints)
    n_cases += 1
    failed += complaints.said[:1]
    return failed, n_cases


def close(failed, n_passed):
    for line in failed:
        print("FAIL", " ".join(line.split())[:1000])
    print(f"{n_passed} passed, {len(failed)} failed")
    return 1 if failed else 0


def selftest():
    """Runs the plan `model` with an agent that does as it should, and with each of its faults."""
    reasons = json.loads((SELFTEST / "reasons.json").read_text())
    reasons = {fault: reason for fault, reason in reasons.items() if fault not in UNSEEN}
    wrong = []
    for fault in ["none", *reasons]:
        folder = tempfile.mkdtemp(prefix="linkspan-acp-")
        os.chdir(folder)
        command = ["node", str(SELFTEST / "agent.mjs"), fault]
        found, _ = asyncio.run(run(PLANS["model"], command))
        shutil.rmtree(folder)
        if fault == "none" and found:
            wrong.append(f"{fault}: should pass: {found[0]}")
        # What a broken message is called is up to each client.
        expected = "client: " if fault == "schema" else reasons.get(fault, "")
        if fault != "none" and not any(expected in it for it in found):
            wrong.append(f'{fault}: should fail with "{expected}", failed with: {found}')
    return close(wrong, len(reasons) + 1 - len(wrong))


def main():
    match sys.argv[1:]:
        case ["--selftest"]:
            return selftest()
        case [plan, *command] if plan in PLANS and command:
            failed, n_cases = asyncio.run(run(PLANS[plan], command))
            return close(failed, n_cases - len(failed))
        case _:
            print("usage: acp_live.py [--selftest] replay|model COMMAND...", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
