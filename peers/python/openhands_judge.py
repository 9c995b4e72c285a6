"""Judges OpenHands event logs with the vendor's own SDK.

Every line must load as an event, come back from the SDK unchanged but for added defaults,
and convert to LLM messages; then the pairing rules that the SDK assumes but does not check.

Files load in three stages, because the SDK knows a kind only once its class is imported:
plain files with `openhands.sdk` alone, `native` ones with the tools as well, and `external`
ones after the classes of the Python package. A plain file that needs more
than the SDK is thereby rejected. (This file must not be named `openhands.py`: it would
hide the package.)

usage: openhands_judge.py [--selftest] DIR...
"""

import json
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Without the local map litellm fetches prices from the network while it is imported.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["OPENHANDS_SUPPRESS_BANNER"] = "1"

# Imported before the SDK: the other way round its lazy imports have deadlocked.
import litellm  # noqa: E402, F401
from openhands.sdk.event import (  # noqa: E402
    ActionEvent,
    AgentErrorEvent,
    ConversationStateUpdateEvent,
    Event,
    LLMConvertibleEvent,
    ObservationEvent,
    UserRejectObservation,
)

EXTENSION = ".openhands.jsonl"
SELFTEST = HERE.parent / "selftest" / "openhands"
STAGES = ["sdk", "native", "external"]
# The on-disk log of OpenHands loses events whose id it cannot put in a file name.
ID = re.compile(r"[0-9a-fA-F-]{8,}")
TERMINAL = ("finished", "error", "stuck")
# A stats update may follow the terminal status, nothing more.
MAX_LINES_FROM_TERMINAL = 2


class Rejected(Exception):
    """The first reason for rejecting a file."""


def judge(path):
    text = path.read_bytes().decode("utf-8", errors="strict")
    if not text.endswith("\n"):
        raise Rejected("the file is empty or its last line has no newline")
    events = [load(f"line {n}", line) for n, line in enumerate(text[:-1].split("\n"), 1)]
    check_ids(events)
    check_pairs(events)
    check_terminals(events)
    try:
        LLMConvertibleEvent.events_to_messages([it for it in events if isinstance(it, LLMConvertibleEvent)])
    except Exception as err:
        raise Rejected(f"events_to_messages: {type(err).__name__}: {err}") from err


def load(at, line):
    try:
        event = Event.model_validate_json(line)
        sent = json.loads(line)
    except ValueError as err:  # A pydantic ValidationError is one.
        raise Rejected(f"{at}: {err}") from err
    lost = find_lost(sent, event.model_dump(mode="json", exclude_none=True), "")
    if lost:
        raise Rejected(f"{at}: {sent['kind']}: the SDK does not give back {lost}")
    return event


def find_lost(sent, got, where):
    """Where `got` differs from `sent` by more than added keys, or None."""
    if isinstance(sent, dict) and isinstance(got, dict):
        for key, value in sent.items():
            if key not in got:
                return f"{where}/{key}"
            if lost := find_lost(value, got[key], f"{where}/{key}"):
                return lost
        return None
    if isinstance(sent, list) and isinstance(got, list) and len(sent) == len(got):
        # A set on the SDK's side: it comes back in any order.
        if where.endswith("/forgotten_event_ids"):
            sent, got = sorted(sent), sorted(got)
        for n, (a, b) in enumerate(zip(sent, got)):
            if lost := find_lost(a, b, f"{where}/{n}"):
                return lost
        return None
    # In Python True == 1, which JSON does not think.
    is_same = sent == got and isinstance(sent, bool) == isinstance(got, bool)
    return None if is_same else where or "/"


def check_ids(events):
    actions, seen = {}, set()
    for n, event in enumerate(events, 1):
        at = f"line {n}"
        if not ID.fullmatch(event.id):
            raise Rejected(f"{at}: id {event.id} is not hexadecimal")
        if event.id in seen:
            raise Rejected(f"{at}: id {event.id} is used twice")
        parent = getattr(event, "parent_id", None)
        if parent not in (None, "__root__") and parent not in seen:
            raise Rejected(f"{at}: parent_id {parent} is no earlier event")
        seen.add(event.id)
        if isinstance(event, ActionEvent):
            actions[event.id] = event.tool_call_id
        if isinstance(event, (ObservationEvent, UserRejectObservation)):
            if event.action_id not in actions:
                raise Rejected(f"{at}: action_id {event.action_id} is no earlier ActionEvent")
            if actions[event.action_id] != event.tool_call_id:
                raise Rejected(f"{at}: action_id and tool_call_id name different calls")


def check_pairs(events):
    """Every action gets exactly one result, before its run ends."""
    waiting, answered = {}, set()
    for n, event in enumerate(events, 1):
        at = f"line {n}"
        if isinstance(event, ActionEvent):
            call = event.tool_call_id
            if call in waiting:
                raise Rejected(f"{at}: tool call {call} is already waiting for its result")
            if event.tool_call.id != call:
                raise Rejected(f"{at}: tool_call.id is not {call}")
            waiting[call] = event
            answered.discard(call)
        elif isinstance(event, (ObservationEvent, UserRejectObservation, AgentErrorEvent)):
            call = event.tool_call_id
            if call in answered:
                raise Rejected(f"{at}: tool call {call} has a second result")
            # An error for a call that nobody made is how a stray result is kept.
            if waiting.pop(call, None) is not None:
                answered.add(call)
        elif is_terminal(event):
            # An action without `action` could not run, so it may stay without a result.
            if stuck := [it for it, action in waiting.items() if action.action is not None]:
                raise Rejected(f"{at}: run ends while tool call {stuck[0]} has no result")
            waiting.clear()


def check_terminals(events):
    ends = [n for n, event in enumerate(events) if is_terminal(event)]
    if not ends:
        raise Rejected("no terminal execution_status")
    if len(events) - ends[-1] > MAX_LINES_FROM_TERMINAL:
        raise Rejected(f"{len(events) - ends[-1] - 1} lines after the last terminal execution_status")
    for a, b in zip(ends, ends[1:]):
        between = [it for it in events[a + 1 : b] if not is_stats(it)]
        if not between:
            raise Rejected(f"line {b + 1}: a second terminal execution_status in one run")


def is_terminal(event):
    is_status = isinstance(event, ConversationStateUpdateEvent) and event.key == "execution_status"
    return is_status and event.value in TERMINAL


def is_stats(event):
    return isinstance(event, ConversationStateUpdateEvent) and event.key == "stats"


def stage(path):
    """The imports a file may need, told by a dotted part of its name or its folder's name."""
    parts = path.name.split(".") + path.parent.name.split(".")
    return next((it for it in STAGES if it in parts), "sdk")


def enter(name):
    if name == "native":
        from openhands.tools import file_editor, glob, grep, task_tracker, terminal  # noqa: F401
    if name == "external":
        sys.path.insert(0, str(HERE.parents[1] / "packages" / "python" / "src"))
        import linkspan.openhands  # noqa: F401


def verdicts(paths):
    """Path to reason, or to None for a pass."""
    out = {}
    for name in STAGES:
        staged = [it for it in paths if stage(it) == name]
        if staged:
            enter(name)
        for path in staged:
            try:
                judge(path)
                out[path] = None
            except (Rejected, UnicodeDecodeError) as err:
                out[path] = " ".join(str(err).split())
    return out


def find(root):
    if root.is_file():
        return [root] if root.name.endswith(EXTENSION) else []
    return sorted(root.rglob(f"*{EXTENSION}"))


def selftest():
    reasons = json.loads((SELFTEST / "bad" / "reasons.json").read_text())
    good, bad = find(SELFTEST / "good"), find(SELFTEST / "bad")
    if not good or not bad:
        sys.exit(f"{SELFTEST}: needs good and bad examples")
    wrong = [f"{SELFTEST}: reasons.json names {it}, which does not exist" for it in set(reasons) - {it.name for it in bad}]
    for path, reason in verdicts(good + bad).items():
        expected = reasons.get(path.name)
        if path in good:
            if reason is not None:
                wrong.append(f"{path}: should pass: {reason}")
        elif expected is None:
            wrong.append(f"{path}: has no entry in reasons.json")
        elif reason is None:
            wrong.append(f"{path}: should fail: {expected}")
        elif expected not in reason:
            wrong.append(f'{path}: should fail with "{expected}", failed with: {reason}')
    return len(good) + len(bad), wrong


def main(args):
    if unknown := [it for it in args if it.startswith("--") and it != "--selftest"]:
        sys.exit(f"openhands: unknown flag {unknown[0]}")
    if "--selftest" in args:
        n_files, wrong = selftest()
    else:
        paths = [path for it in args for path in find(Path(it))]
        if not paths:
            sys.exit(f"openhands: no *{EXTENSION} file in {', '.join(args) or 'no folder at all'}")
        n_files = len(paths)
        wrong = [f"{path}: {reason}" for path, reason in verdicts(paths).items() if reason is not None]
    for line in wrong:
        print(f"FAIL {line[:500]}")
    print(f"{max(n_files - len(wrong), 0)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
