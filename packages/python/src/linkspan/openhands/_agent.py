"""The agents: what the SDK's `Conversation` calls."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

from openhands.sdk.agent.base import AgentBase
from openhands.sdk.conversation.state import ConversationExecutionStatus, ConversationState
from openhands.sdk.event import AgentErrorEvent, SystemPromptEvent
from openhands.sdk.event.conversation_error import ConversationErrorEvent
from openhands.sdk.llm import LLM, TextContent
from openhands.sdk.security.confirmation_policy import NeverConfirm
from openhands.sdk.utils.pydantic_secrets import resolve_expose_mode
from pydantic import Field, FieldSerializationInfo, PrivateAttr, field_serializer

from .._binary import binary_path
from .._conversation import run
from .._errors import LinkspanError
from .._link import Link, Message
from .._options import Permissions
from .._program import Program
from ._saved import Saved, prompt_text
from ._tools import agent_tools, register_native_tools
from ._turn import Step, StepContext, Turn

if TYPE_CHECKING:
    from openhands.sdk.conversation import LocalConversation
    from openhands.sdk.conversation.types import (
        ConversationCallbackType,
        ConversationTokenCallbackType,
    )

T = TypeVar("T")

Requests: TypeAlias = Generator[tuple[Link, str, dict[str, Any]], Message, T]
"""Requests, each of which wants its reply, and a result; with or without an event loop."""

# How often a step that blocks looks whether it is to stop.
_SECONDS_BETWEEN_LOOKS = 0.1

# How long an interrupted step waits for the agent's last words.
_SECONDS_TO_STOP = 5.0


class LinkspanAgent(AgentBase):
    """An agent of the OpenHands SDK that is any engine of linkspan.

    The engine runs its own tools; every call and every result is an event of the conversation. What
    it may do is decided by `allowed_tools` and by the confirmation policy of the conversation.
    """

    llm: LLM = Field(default_factory=lambda: LLM(model="linkspan"))
    """Holds the tokens and the cost; the engine brings its own model."""
    include_default_tools: list[str] = Field(default_factory=list)

    engine: str = "claude"
    """The engine, such as `claude`, `codex`, `opencode` or `gemini`."""
    allowed_tools: list[str] | None = None
    """The tools that may run, by the engine's own names; the usual ones if not given."""
    model: str | None = None
    """The model, by the engine's own name for it."""
    permissions: Permissions | None = None
    """What the engine may do, where the conversation confirms nothing."""
    config: str | None = None
    """The config file of linkspan; the user's own if not given."""
    data_dir: str | None = None
    """Where linkspan keeps sessions; the user's own data directory if not given."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables for the engine, besides those of this process. Their values are never stored."""
    profile: str | None = None
    """How calls of tools look: see the profiles in `docs/openhands.md`."""
    resume: str | None = None
    """A session of the engine that the conversation goes on with."""

    # By conversation: nothing keeps an agent from being used in several.
    _programs: dict[str, Program] = PrivateAttr(default_factory=dict)
    _turns: dict[str, Turn] = PrivateAttr(default_factory=dict)
    _last: list[str] = PrivateAttr(default_factory=list)

    @field_serializer("env")
    def _hide_env(self, env: dict[str, str], info: FieldSerializationInfo) -> dict[str, str]:
        return env if resolve_expose_mode(info.context) == "plaintext" else {}

    @property
    def supports_openhands_tools(self) -> bool:
        """`False`: the engine brings its own."""
        return False

    @property
    def supports_openhands_mcp(self) -> bool:
        """`False`: the engine's own config names its MCP servers."""
        return False

    @property
    def supports_condenser(self) -> bool:
        """`False`: the engine looks after its own context."""
        return False

    def get_all_llms(self) -> Generator[LLM]:
        """Yield the one that counts."""
        yield self.llm

    def init_state(self, state: ConversationState, on_event: ConversationCallbackType) -> None:
        """Refuse what an engine cannot do, and introduce the agent."""
        for name in ("condenser", "critic", "mcp_config"):
            if getattr(self, name):
                raise ValueError(f"{self.name} takes no `{name}`: the engine brings its own")
        allowed = self._allowed()
        if self.profile == "native":
            register_native_tools()
        if any(isinstance(event, SystemPromptEvent) for event in state.events[:3]):
            return
        tools = "its own" if allowed is None else ", ".join(allowed) or "none"
        text = (
            f"{self.engine}, run by {_version()}: model {self.model or 'of its choice'}, "
            f"folder {_folder(state)}, tools {tools}"
        )
        on_event(SystemPromptEvent(system_prompt=TextContent(text=text), tools=[]))

    def step(
        self,
        conversation: LocalConversation,
        on_event: ConversationCallbackType,
        on_token: ConversationTokenCallbackType | None = None,
    ) -> None:
        """Take one turn: from the prompt to the end of the run, or to what has to be confirmed."""
        step = self._context(conversation, on_event, on_token)
        how = Step.MORE
        try:
            turn = _answered(self._begin(step))
            if turn is None:
                return
            while how is Step.MORE:
                message = turn.link.inbox.take(_SECONDS_BETWEEN_LOOKS)
                if message is not None:
                    how = turn.take(message, step)
                    continue
                token = conversation.cancel_token
                if token is not None and token.is_cancelled:
                    self._stop(turn, step)
                    # The interrupting thread waits for the lock, and sets the state.
                    return
        except LinkspanError as err:
            raise self._failed(err, step) from err
        self._finish(turn, how, step)

    async def astep(
        self,
        conversation: LocalConversation,
        on_event: ConversationCallbackType,
        on_token: ConversationTokenCallbackType | None = None,
    ) -> None:
        """`step`, without blocking the event loop."""
        step = self._context(conversation, on_event, on_token)
        how = Step.MORE
        turn = None
        try:
            turn = await _aanswered(self._begin(step))
            if turn is None:
                return
            while how is Step.MORE:
                # Others may speak to the conversation while the agent works.
                async with conversation._released_state_lock_during_io():
                    message = await turn.link.inbox.atake()
                how = turn.take(message, step)
        except asyncio.CancelledError:
            await self._astop(turn, step)
            raise
        except LinkspanError as err:
            raise self._failed(err, step) from err
        self._finish(turn, how, step)

    def ask_agent(self, question: str) -> str | None:
        """Ask a copy of the engine's session, which changes nothing for the conversation."""
        session = self._last[-1] if self._last else None
        with run(
            question,
            engine=None if session else self.engine,
            fork=session,
            model=self.model,
            permissions="deny",
            allowed_tools=[],
            config=self.config,
            data_dir=self.data_dir,
            env=self.env,
        ) as asked:
            return asked.result().get("answer")

    def close(self) -> None:
        """End the engine. May be called again."""
        self._turns.clear()
        while self._programs:
            self._programs.popitem()[1].close()

    def _context(
        self,
        conversation: LocalConversation,
        on_event: ConversationCallbackType,
        on_token: ConversationTokenCallbackType | None,
    ) -> StepContext:
        return StepContext(conversation, on_event, on_token, self.llm, self.engine)

    def _begin(self, step: StepContext) -> Requests[Turn | None]:
        """Go on with the open turn, or begin one; `None` if there is nothing to do."""
        state = step.conversation.state
        turn = self._turns.get(str(state.id))
        if turn is not None:
            turn.settle_all(step)
            return turn
        # Calls whose agent has exited will never be answered.
        for action in ConversationState.get_unmatched_actions(state.active_branch()):
            step.on_event(
                AgentErrorEvent(
                    tool_name=action.tool_name,
                    tool_call_id=action.tool_call_id,
                    error="The agent has ended before this call did.",
                )
            )
        messages = Saved(state).unsent()
        if not messages:
            state.execution_status = ConversationExecutionStatus.FINISHED
            return None
        return (yield from self._submit(prompt_text(messages), messages[-1].id, state))

    def _submit(self, prompt: str, message: str, state: ConversationState) -> Requests[Turn]:
        saved = Saved(state)
        session, is_forked = saved.session, saved.is_forked
        if session is None and (context := self._instructions(state)):
            prompt = f"{context}\n\n{prompt}"
        allowed = self._allowed()
        program = self._programs.get(str(state.id))
        if program is None or not program.is_running:
            program = self._programs[str(state.id)] = self._start(state)
        fields = {
            "prompt": prompt,
            "engine": self.engine,
            "model": self.model,
            **self._rights(state, allowed),
            **({"fork": session} if is_forked else {"session": session}),
        }
        if session is None:
            fields |= {"cwd": _folder(state), "resume": self.resume}
        reply = yield program, "run.submit", fields
        session = str(reply["sessionId"])
        turn = Turn(
            link=program,
            session=session,
            prompt=message,
            previous=saved.get("prompt"),
            after=int(reply["cursor"]),
            allowed=allowed,
        )
        saved.put(session=session, conversation=str(state.id), prompt=message, interrupted=None)
        self._turns[str(state.id)] = turn
        self._last[:] = [session]
        return turn

    def _rights(self, state: ConversationState, allowed: list[str] | None) -> dict[str, Any]:
        """What the engine may do without asking."""
        if isinstance(state.confirmation_policy, NeverConfirm):
            mode = self.permissions or ("listed" if allowed is None else "deny")
            return {"permissions": mode, "allow": allowed}
        # Nothing is allowed beforehand, or the list would go round the policy.
        return {"permissions": "plan" if self.permissions == "plan" else "ask", "allow": []}

    def _finish(self, turn: Turn, how: Step, step: StepContext) -> None:
        state = step.conversation.state
        if how is Step.CONFIRM:
            state.execution_status = ConversationExecutionStatus.WAITING_FOR_CONFIRMATION
            return
        self._turns.pop(str(state.id), None)
        turn.result()
        # A message that came meanwhile is taken by the next step.
        if not Saved(state).unsent():
            state.execution_status = ConversationExecutionStatus.FINISHED

    def _stop(self, turn: Turn, step: StepContext) -> None:
        """Abort a turn and take its last events; an agent that does not end is ended."""
        conversation = str(step.conversation.state.id)
        until = time.monotonic() + _SECONDS_TO_STOP
        self._turns.pop(conversation, None)
        try:
            turn.abort()
            while (left := until - time.monotonic()) > 0:
                message = turn.link.inbox.take(left)
                if message is not None and turn.take(message, step) is Step.ENDED:
                    return
        except LinkspanError:
            # It has ended already.
            pass
        self._programs.pop(conversation).close()

    async def _astop(self, turn: Turn | None, step: StepContext) -> None:
        """`_stop`, without blocking the event loop; `None` is a turn that has not begun."""
        conversation = str(step.conversation.state.id)
        self._turns.pop(conversation, None)
        try:
            if turn is not None:
                turn.abort()
                await asyncio.wait_for(_to_end(turn, step), _SECONDS_TO_STOP)
                return
        except (LinkspanError, asyncio.TimeoutError):
            # It has ended already, or it does not.
            pass
        if program := self._programs.pop(conversation, None):
            await program.aclose()

    def _failed(self, err: LinkspanError, step: StepContext) -> LinkspanError:
        """Tell of an error of linkspan; the SDK adds nothing to one of this source."""
        conversation = str(step.conversation.state.id)
        self._turns.pop(conversation, None)
        program = self._programs.get(conversation)
        if program is not None and not program.is_running:
            del self._programs[conversation]
        step.on_event(ConversationErrorEvent(source="agent", code=err.code, detail=str(err)))
        return err

    def _start(self, state: ConversationState) -> Program:
        arguments = ["--to", "openhands"]
        for flag, value in (
            ("--profile", self.profile),
            ("--config", self.config),
            ("--data-dir", self.data_dir),
        ):
            if value is not None:
                arguments += [flag, value]
        env = {**state.secret_registry.get_all_secrets_as_env_vars(), **self.env}
        return Program(arguments, env)

    def _allowed(self) -> list[str] | None:
        """The tools that may run; `None` are the usual ones."""
        if self.allowed_tools is not None:
            return self.allowed_tools
        return agent_tools(self.engine, self.tools) or None

    def _instructions(self, state: ConversationState) -> str | None:
        """What the context of the agent adds in front of the first prompt."""
        if self.agent_context is None:
            return None
        self.agent_context.validate_acp_compatibility()
        return self.agent_context.to_acp_prompt_context(
            additional_secret_infos=state.secret_registry.get_secret_infos()
        )


class ClaudeCodeAgent(LinkspanAgent):
    """Claude Code as an agent of the OpenHands SDK."""

    engine: Literal["claude"] = "claude"  # pyright: ignore[reportIncompatibleVariableOverride]


async def _to_end(turn: Turn, step: StepContext) -> None:
    while turn.take(await turn.link.inbox.atake(), step) is not Step.ENDED:
        pass


def _answered(requests: Requests[T]) -> T:
    """Make the requests that something consists of."""
    try:
        link, control, fields = next(requests)
        while True:
            link, control, fields = requests.send(link.request(control, **fields))
    except StopIteration as done:
        return cast(T, done.value)


async def _aanswered(requests: Requests[T]) -> T:
    """`_answered`, without blocking the event loop."""
    try:
        link, control, fields = next(requests)
        while True:
            link, control, fields = requests.send(await link.arequest(control, **fields))
    except StopIteration as done:
        return cast(T, done.value)


def _folder(state: ConversationState) -> str:
    # The SDK's own default is relative, and the engine is started inside of it.
    return os.path.abspath(state.workspace.working_dir)


def _version() -> str:
    said = subprocess.run([binary_path(), "--version"], capture_output=True, text=True, check=False)
    return said.stdout.strip() or "linkspan"
