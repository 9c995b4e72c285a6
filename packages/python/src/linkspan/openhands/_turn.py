"""One prompt of a conversation, from its submission to its end.

Takes the messages of `linkspan stdio` one by one and puts what they say into the conversation. It
neither reads nor waits; `_agent.py` does, with or without an event loop.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from litellm.types.utils import Delta, ModelResponseStream, StreamingChoices
from openhands.sdk.agent.stream_context import StreamContext
from openhands.sdk.event import ActionEvent, Event, UserRejectObservation

from .._errors import RunFailed
from .._link import Link, Message
from ._saved import Saved

if TYPE_CHECKING:
    from openhands.sdk.conversation import LocalConversation
    from openhands.sdk.llm import LLM


# Each of them answers a call.
_ANSWERS = ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent")


class Step(enum.Enum):
    """How a step goes on."""

    MORE = enum.auto()
    """There is more to come."""
    CONFIRM = enum.auto()
    """The user has to confirm something."""
    ENDED = enum.auto()
    """The run has ended."""


@dataclass
class Turn:
    """A run of the agent, as the conversation sees it."""

    link: Link
    session: str
    prompt: str
    """The id of its last message."""
    previous: str | None
    """That of the prompt before."""
    after: int
    """The cursor of the last event before it."""
    allowed: list[str] | None
    asks: dict[str, str] = field(default_factory=dict[str, str])
    """Open asks, and the calls that they are about."""
    renamed: dict[str, str] = field(default_factory=dict[str, str])
    """Events that have another id here, because their text was streamed under it."""
    rejected: set[str] = field(default_factory=set[str])
    """Calls that the SDK has answered itself, by rejecting them."""
    stream: StreamContext | None = None
    error: Message | None = None
    outcome: str | None = None
    is_aborted: bool = False

    def take(self, message: Message, step: StepContext) -> Step:
        """Put a message into the conversation."""
        if message.get("sessionId") != self.session:
            return Step.MORE
        cursor = str(message.get("cursor", "")).partition(".")[0]
        if cursor and int(cursor) <= self.after:
            return Step.MORE
        kind = message.get("type")
        if kind == "bridge.event":
            self._event(message["data"], step)
        elif kind == "bridge.ask":
            return self._ask(message, step)
        elif kind == "bridge.ask_settled":
            self.asks.pop(message["askId"], None)
        elif kind == "bridge.run_ended":
            self._end(message, step)
            return Step.ENDED
        return Step.MORE

    def abort(self) -> None:
        """Stop the run; its end still comes."""
        self.is_aborted = True
        self.link.send("run.abort", sessionId=self.session)

    def settle_all(self, step: StepContext) -> None:
        """Answer what the user was to confirm: going on is a yes, unless it was rejected."""
        rejected = {
            event.tool_call_id: event.rejection_reason
            for event in step.conversation.state.active_branch()
            if isinstance(event, UserRejectObservation)
        }
        self.rejected |= rejected.keys()
        for ask, call in list(self.asks.items()):
            reason = rejected.get(call)
            self._settle(ask, "allow" if reason is None else "deny", reason)

    def result(self) -> None:
        """Raise if the run was not completed, and not because it was stopped here."""
        if self.outcome == "completed" or self.is_aborted:
            return
        error = self.error or {}
        raise RunFailed(
            error.get("code", self.outcome or "failed"),
            error.get("message", f"the run ended as `{self.outcome}`"),
            outcome=self.outcome or "failed",
        )

    def _event(self, data: dict[str, Any], step: StepContext) -> None:
        kind, source = data["kind"], data.get("source")
        if kind == "StreamingDeltaEvent":
            self._delta(data, step)
            return
        if kind == "SystemPromptEvent":
            # The conversation has its own; what the engine says of itself is kept beside it.
            Saved(step.conversation.state).put(engine=data["system_prompt"]["text"])
            return
        if kind == "ConversationStateUpdateEvent" or (kind == "MessageEvent" and source == "user"):
            return
        if self.is_aborted and kind in ("InterruptEvent", "ConversationErrorEvent"):
            # The SDK emits both itself for a turn that it stopped.
            return
        if kind == "ConversationErrorEvent":
            # Only for an error of this source does the SDK leave out its own.
            data["source"] = "agent"
        if kind == "MessageEvent" and source == "environment":
            # Or it would be taken for a prompt.
            data.setdefault("sender", step.engine)
        if data.get("action_id") in self.renamed:
            data["action_id"] = self.renamed[data["action_id"]]
        if kind in _ANSWERS and data["tool_call_id"] in self.rejected:
            return
        self._emit(data, step)

    def _emit(self, data: dict[str, Any], step: StepContext) -> None:
        # The slot of a stream becomes the event that the text is in.
        is_whole = data["kind"] in ("MessageEvent", "ActionEvent") and data["source"] == "agent"
        stream = self.stream if is_whole else None
        if stream is not None and (claimed := stream.claim()):
            self.renamed[data["id"]] = claimed
            data["id"] = claimed
        event = Event.model_validate(data)
        step.on_event(step.conversation.state.secret_registry.mask_secrets_in_model(event))
        if stream is not None:
            stream.commit()
            self.stream = None

    def _delta(self, data: dict[str, Any], step: StepContext) -> None:
        if self.stream is None:
            self.stream = StreamContext.open(step.conversation, step.on_token)
        if self.stream.token_callback is None:
            return
        delta = Delta(content=data.get("content"), reasoning_content=data.get("reasoning_content"))
        self.stream.on_chunk(ModelResponseStream(choices=[StreamingChoices(delta=delta)]))

    def _ask(self, message: Message, step: StepContext) -> Step:
        ask, call = message["askId"], message.get("itemId") or ""
        if ask in self.asks:
            return Step.MORE
        self.asks[ask] = call
        if self._must_confirm(call, step):
            return Step.CONFIRM
        is_allowed = self.allowed is None or message["tool"] in self.allowed
        reason = None if is_allowed else f"`{message['tool']}` is not one of the allowed tools"
        self._settle(ask, "allow" if is_allowed else "deny", reason)
        return Step.MORE

    def _must_confirm(self, call: str, step: StepContext) -> bool:
        state = step.conversation.state
        for event in reversed(state.active_branch()):
            if isinstance(event, ActionEvent) and event.tool_call_id == call:
                analyzer = state.security_analyzer
                risk = analyzer.security_risk(event) if analyzer else event.security_risk
                return state.confirmation_policy.should_confirm(risk)
        # A question that is about no call has no risk that is known.
        return state.confirmation_policy.should_confirm()

    def _settle(self, ask: str, decision: str, reason: str | None) -> None:
        # The reply is not waited for: somebody else may have been faster, and the end comes anyway.
        self.asks.pop(ask, None)
        self.link.send("ask.settle", askId=ask, decision=decision, message=reason)

    def _end(self, message: Message, step: StepContext) -> None:
        self.outcome, self.error = message["outcome"], message.get("error")
        if self.stream is not None:
            self.stream.close(message["outcome"])
            self.stream = None
        if self.outcome != "completed":
            # What was not done to its end is unsent again.
            saved = Saved(step.conversation.state)
            saved.put(prompt=self.previous, interrupted=self.prompt)
        count(step.llm, message)


@dataclass(frozen=True)
class StepContext:
    """What a step of the SDK comes with."""

    conversation: LocalConversation
    on_event: Callable[[Event], None]
    on_token: Callable[[Any], None] | None
    llm: LLM
    engine: str


def count(llm: LLM, ended: Message) -> None:
    """Add what a run has used to the metrics of the conversation.

    The figures are those of the run alone: the `stats` of the stream count the whole session, and a
    conversation that was opened again would count it twice.
    """
    if cost := ended.get("cost_usd"):
        llm.metrics.add_cost(cost)
    if usage := ended.get("usage"):
        models: list[Message] = ended.get("model_usage") or []
        windows = [int(it.get("context_window") or 0) for it in models]
        llm.metrics.add_token_usage(
            prompt_tokens=usage["input_tokens"],
            completion_tokens=usage["output_tokens"],
            cache_read_tokens=usage["cached_input_tokens"],
            cache_write_tokens=usage["cache_write_input_tokens"],
            reasoning_tokens=usage["reasoning_output_tokens"],
            context_window=max(windows, default=0),
            response_id=ended["runId"] or "",
        )
    # This is how servers learn of it.
    if (update := llm.telemetry._stats_update_callback) is not None:
        update()
