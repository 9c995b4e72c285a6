"""Runs a conversation of the OpenHands SDK for linkspan, which starts this with `python -c`.

JSON lines in: `open`, then any of `prompt`, `answer`, `interrupt`, `model` and `permissions`; the end of
stdin is the end of the work. JSON lines out: the SDK's own events, as the SDK writes them, and nothing
else. Runs are told by `execution_status`, which is sent when all else of a run has been told.

Tried with openhands-sdk and openhands-tools 1.58.0.
"""

import sys

# `-c` looks into the working directory first, and that is somebody's repository.
sys.path[:] = [it for it in sys.path if it]

import asyncio
import json
import os
import signal
import threading
import uuid
import warnings
from datetime import datetime, timezone
from pathlib import Path

# What the SDK prints, and what its tools start, must neither speak nor read here.
OUT = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
IN = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
os.dup2(2, 1)
NULL = os.open(os.devnull, os.O_RDONLY)
os.dup2(NULL, 0)
os.close(NULL)

# Prices come with litellm; otherwise they are fetched while it is imported.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("OPENHANDS_SUPPRESS_BANNER", "1")
os.environ.setdefault("LOG_LEVEL", "WARNING")
# They are for the authors of libraries.
warnings.simplefilter("ignore")
os.environ.setdefault("LLM_USAGE_ID", "agent")
os.environ.setdefault("LLM_STREAM", "true")

# Calls that change nothing, and are not asked about.
LOOKS = {"finish", "think", "task_tracker", "glob", "grep", "invoke_skill"}
# Calls that are words: nobody is asked, whatever else the response calls for.
WORDS = {"finish", "think"}

# Folders that decide what programs run: changing them is no mere edit.
SPECIAL = {".git", ".claude", ".codex", ".gemini", ".opencode", ".vscode", ".husky"}

STOPPED = "the run was stopped"
LOST = "the process ended before this call did"
TELLING = threading.Lock()


class Problem(Exception):
    """Why there is no conversation: a code and a sentence."""

    def __init__(self, code, detail):
        super().__init__(detail)
        self.code = code


def tell(event):
    """Sends one event. The SDK's times have no zone, and are those of this machine."""
    at = datetime.fromisoformat(event.timestamp).astimezone(timezone.utc)
    event = event.model_copy(update={"timestamp": zulu(at)})
    say(event.model_dump_json(exclude_none=True))


def zulu(at):
    return at.isoformat().replace("+00:00", "Z")


def say(line):
    # Tools work on threads of their own.
    with TELLING:
        OUT.write(line + "\n")
        OUT.flush()


def tell_failure(code, detail):
    """Tells a failure as the SDK would, which may not be there."""

    def event(kind, **fields):
        at = zulu(datetime.now(timezone.utc))
        head = {"kind": kind, "id": str(uuid.uuid4()), "timestamp": at}
        say(json.dumps(dict(head, source="environment", **fields)))

    event("ConversationErrorEvent", code=code, detail=detail)
    key = "execution_status"
    event("ConversationStateUpdateEvent", key=key, value="error")


try:
    # Before the SDK: the other way round its lazy imports have deadlocked.
    import litellm  # noqa: F401
    from openhands.sdk import (
        LLM,
        AgentContext,
        ConversationExecutionStatus,
        ImageContent,
        LocalConversation,
        Message,
        TextContent,
    )
    from openhands.sdk.conversation.exceptions import ConversationRunError
    from openhands.sdk.event import (
        ConversationStateUpdateEvent,
        InterruptEvent,
        StreamingDeltaEvent,
        UserRejectObservation,
    )
    from openhands.sdk.event.conversation_error import ConversationErrorEvent
    from openhands.sdk.mcp.config import MCPServer
    from openhands.sdk.security.confirmation_policy import AlwaysConfirm, NeverConfirm
    from openhands.sdk.skills import load_available_skills
    from openhands.tools.preset.default import get_default_agent
# A Python that is too old for it cannot even parse it.
except (ImportError, SyntaxError) as error:
    tell_failure(
        "NotInstalled",
        f"{sys.executable} cannot import the OpenHands SDK: {error}\n"
        "hint: install it for a Python of at least 3.12, with "
        "`pip install openhands-sdk openhands-tools`, and name that Python with "
        "`engines.openhands.program` in the config or with `--program PATH` of `linkspan run`",
    )
    sys.exit(1)


def folder():
    """Where conversations are kept: a part of linkspan's own state folder."""
    state = os.environ.get("XDG_STATE_HOME", "")
    state = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return state / "linkspan" / "openhands"


def known(session):
    """The id of a conversation that is there; the SDK would begin another one under that name."""
    try:
        found = uuid.UUID(session)
    except ValueError:
        found = None
    if found is None or not (folder() / found.hex / "base_state.json").exists():
        raise Problem("NotFound", f"there is no conversation {session} in {folder()}")
    return found


def newest(cwd):
    """The conversation of this directory that was last worked on."""

    def is_here(path):
        try:
            return json.loads(path.read_text())["workspace"]["working_dir"] == cwd
        except (OSError, ValueError, KeyError, TypeError):
            return False

    found = [it for it in folder().glob("*/base_state.json") if is_here(it)]
    if not found:
        raise Problem("NotFound", f"there is no conversation of {cwd} in {folder()}")
    return uuid.UUID(max(found, key=lambda it: it.stat().st_mtime).parent.name)


def is_below(action):
    """Whether the file of this call is below the working directory. Links are followed, and folders that
    decide what programs run do not count."""
    path = getattr(action, "path", None)
    if not path:
        return False
    cwd = Path.cwd().resolve()
    path = (cwd / path).resolve()
    return path.is_relative_to(cwd) and not SPECIAL.intersection(path.relative_to(cwd).parts)


class Talk:
    def __init__(self):
        self.conversation = None
        self.permissions = {}
        self.servers = {}
        self.run = None
        self.step = None
        self.is_stopped = False
        # By call: what somebody says to it.
        self.asked = {}

    # What is said to it.

    def open(self, line):
        self.permissions = line["permissions"]
        self.servers = line.get("mcp_servers", {})
        if line.get("effort"):
            os.environ["LLM_REASONING_EFFORT"] = line["effort"]
        cwd = os.getcwd()
        session = None
        if line.get("session"):
            session = known(line["session"])
        elif line.get("fork"):
            source = self.converse(cwd, line.get("model"), known(line["fork"]))
            session = source.fork().id
        elif line.get("latest"):
            session = newest(cwd)
        self.conversation = self.converse(cwd, line.get("model"), session)
        self.confirm()
        # A call that its process did not live to see would run now, and nobody would be asked.
        for action in self.waiting():
            self.refuse(action, LOST)
        state = self.conversation.state
        tell(ConversationStateUpdateEvent.from_conversation_state(state))

    def prompt(self, line):
        self.is_stopped = False
        content = [TextContent(text=line["text"])]
        if line.get("images"):
            content.append(ImageContent(image_urls=line["images"]))
        message = Message(role="user", content=content)
        self.run = asyncio.ensure_future(self.work(message))

    def answer(self, line):
        waiting = self.asked.get(line["call"])
        if waiting is not None and not waiting.done():
            waiting.set_result(line)

    def interrupt(self, _line=None):
        self.is_stopped = True
        for waiting in self.asked.values():
            if not waiting.done():
                waiting.set_result(None)
        if self.step is not None:
            token = self.conversation.cancel_token
            if token is not None:
                token.cancel()
            self.step.cancel()

    def model(self, line):
        self.conversation.switch_llm(self.llm(line["model"]))

    def permit(self, line):
        self.permissions = line["permissions"]
        self.confirm()

    # What it does.

    def llm(self, model):
        """Every `LLM_*` variable is one of the SDK's own settings."""
        if model:
            os.environ["LLM_MODEL"] = model
        if not os.environ.get("LLM_MODEL"):
            hint = "set LLM_MODEL, or `engines.openhands.model`, such as anthropic/claude-sonnet-4-5"
            raise Problem("NoModel", f"no model is named\nhint: {hint}")
        return LLM.load_from_env()

    def converse(self, cwd, model, session):
        agent = get_default_agent(llm=self.llm(model), cli_mode=True)
        skills = load_available_skills(cwd, include_user=True, include_project=True)
        more = {
            "agent_context": AgentContext(skills=list(skills.values())),
            "mcp_config": {
                name: MCPServer.model_validate(it) for name, it in self.servers.items()
            },
        }
        return LocalConversation(
            agent=agent.model_copy(update=more),
            workspace=cwd,
            persistence_dir=folder(),
            conversation_id=session,
            callbacks=[tell],
            stream_callbacks=[self.streamed],
            visualizer=None,
        )

    def streamed(self, frame):
        """Text as it is written; secrets are masked in it already."""
        kind = getattr(frame, "kind", None)
        if kind == "text":
            tell(StreamingDeltaEvent(content=frame.content))
        elif kind == "reasoning":
            tell(StreamingDeltaEvent(reasoning_content=frame.content))

    def confirm(self):
        is_free = self.permissions["everything"] and not self.permissions["deny"]
        policy = NeverConfirm() if is_free else AlwaysConfirm()
        self.conversation.set_confirmation_policy(policy)

    async def work(self, message):
        """One run: a prompt, and steps and questions until it ends."""
        conversation = self.conversation
        asking = ConversationExecutionStatus.WAITING_FOR_CONFIRMATION
        ended = None
        try:
            # The first message starts the tools.
            await asyncio.to_thread(conversation.send_message, message)
            while not self.is_stopped:
                self.state("execution_status", "running")
                self.step = asyncio.ensure_future(conversation.arun())
                try:
                    await self.step
                finally:
                    self.step = None
                if conversation.state.execution_status != asking:
                    ended = conversation.state.execution_status.value
                    break
                await self.decide()
        except asyncio.CancelledError:
            # It was stopped before the SDK was ready to be.
            pass
        except ConversationRunError as error:
            # The SDK has told it as an event.
            ended = "error"
            print(error, file=sys.stderr)
        except Exception as error:
            ended = "error"
            code, detail = type(error).__name__, str(error)
            source = "environment"
            tell(ConversationErrorEvent(source=source, code=code, detail=detail))
        if ended is None:
            self.withdraw()
            tell(InterruptEvent())
            ended = "paused"
        self.state("stats", conversation.state.stats)
        # Nothing but a new prompt follows; a state that says so is an end.
        self.state("execution_status", "finished" if ended == "idle" else ended)

    def state(self, key, value):
        tell(ConversationStateUpdateEvent(key=key, value=value))

    def waiting(self):
        state = self.conversation.state
        return state.get_unmatched_actions(state.active_branch())

    async def decide(self):
        """Settles every call that waits: beforehand, or by asking."""
        is_asking = False
        for action in self.waiting():
            verdict = self.verdict(action)
            if verdict is None:
                is_asking = True
            elif verdict is not True:
                self.reject(action, verdict)
        if not is_asking:
            return
        actions = [it for it in self.waiting() if it.tool_name not in WORDS]
        future = asyncio.get_running_loop().create_future
        self.asked = {it.tool_call_id: future() for it in actions}
        self.state("execution_status", "waiting_for_confirmation")
        await asyncio.gather(*(self.settle(it) for it in actions))
        self.asked = {}

    async def settle(self, action):
        answer = await self.asked[action.tool_call_id]
        if answer is None:
            return
        if not answer["allow"]:
            self.reject(action, answer.get("reason") or "the user said no")
        elif answer.get("always"):
            self.permissions["allow"].append(action.tool_name)

    def verdict(self, action):
        """True, the reason why not, or None when somebody has to be asked."""
        name = action.tool_name
        # Only the editor's `view` looks: to the terminal it is a program of that name.
        is_view = name == "file_editor" and getattr(action.action, "command", None) == "view"
        is_look = name in LOOKS or is_view
        if name in self.permissions["deny"]:
            return f"`{name}` is not allowed here"
        if is_look or self.permissions["everything"] or name in self.permissions["allow"]:
            return True
        if self.permissions["edits"] and name == "file_editor" and is_below(action.action):
            return True
        if self.permissions["asks"]:
            return None
        return f"`{name}` was not allowed beforehand, and nobody can be asked"

    def reject(self, action, reason):
        tell(self.refuse(action, reason))

    def refuse(self, action, reason):
        event = UserRejectObservation(
            action_id=action.id,
            tool_name=action.tool_name,
            tool_call_id=action.tool_call_id,
            rejection_reason=reason,
        )
        with self.conversation.state as state:
            state.append_event(event)
        return event

    def withdraw(self):
        """What still waits would run with the next prompt, as if it had been allowed."""
        for action in self.waiting():
            self.reject(action, STOPPED)


async def main():
    loop = asyncio.get_running_loop()
    lines = asyncio.Queue()

    def listen():
        for line in IN:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)

    try:
        talk = Talk()
        loop.add_signal_handler(signal.SIGINT, talk.interrupt)
        threading.Thread(target=listen, daemon=True).start()
        verbs = {
            "open": talk.open,
            "prompt": talk.prompt,
            "answer": talk.answer,
            "interrupt": talk.interrupt,
            "model": talk.model,
            "permissions": talk.permit,
        }
        while (line := await lines.get()) is not None:
            line = json.loads(line)
            verbs[line["type"]](line)
        if talk.run is not None:
            await talk.run
        if talk.conversation is not None:
            await asyncio.to_thread(talk.conversation.close)
    except Problem as problem:
        tell_failure(problem.code, str(problem))
        return 1
    except Exception as error:
        tell_failure(type(error).__name__, str(error))
        return 1
    return 0


async def leave():
    """Goes at once: threads of tools that are still at work would be waited for."""
    code = await main()
    sys.stderr.flush()
    os._exit(code)


asyncio.run(leave())
