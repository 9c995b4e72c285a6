"""What an agent remembers in the state of a conversation, over the end of its process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openhands.sdk.event import MessageEvent
from openhands.sdk.llm import ImageContent

if TYPE_CHECKING:
    from openhands.sdk.conversation.state import ConversationState

_KEY = "linkspan"


class Saved:
    """The part of `state.agent_state` that is linkspan's."""

    def __init__(self, state: ConversationState) -> None:
        self._state = state

    def get(self, key: str) -> Any:
        """A value, or `None`."""
        return self._state.agent_state.get(_KEY, {}).get(key)

    def put(self, **values: Any) -> None:
        """Remember values; a new dict each time, because that is what makes the SDK save it."""
        known = self._state.agent_state.get(_KEY, {})
        self._state.agent_state = {**self._state.agent_state, _KEY: {**known, **values}}

    @property
    def session(self) -> str | None:
        """linkspan's id of the session."""
        found: str | None = self.get("session")
        return found

    @property
    def is_forked(self) -> bool:
        """Whether the session is that of the conversation this one was copied from."""
        return self.session is not None and self.get("conversation") != str(self._state.id)

    def unsent(self) -> list[MessageEvent]:
        """The messages that the agent has not been given yet, or not to the end."""
        branch = self._state.active_branch()
        sent, interrupted = self.get("prompt"), self.get("interrupted")
        if sent is not None and all(event.id != sent for event in branch):
            raise ValueError(
                "this conversation was moved to before its last prompt, where the agent's own "
                "session cannot follow; start a new conversation instead"
            )
        messages = [it for it in branch if isinstance(it, MessageEvent) and is_prompt(it)]
        ids = [event.id for event in messages]
        new = messages[ids.index(sent) + 1 :] if sent in ids else messages
        # A stopped turn is retried, unless there is a newer user message.
        if interrupted in ids:
            newer = messages[ids.index(interrupted) + 1 :]
            return newer or new
        return new


def is_prompt(event: MessageEvent) -> bool:
    """Whether this is for the agent: of the user, or of the SDK, such as a stop hook's feedback.

    What the agent's own program told its model is in the conversation too, under a sender.
    """
    if event.source == "user":
        return True
    return (
        event.source == "environment" and event.llm_message.role == "user" and event.sender is None
    )


def prompt_text(messages: list[MessageEvent]) -> str:
    """What to send for these messages."""
    texts: list[str] = []
    for message in messages:
        # With what skills and hooks have added to it.
        for content in message.to_llm_message().content:
            if isinstance(content, ImageContent):
                raise ValueError("a message has a picture, and prompts of linkspan are text")
            texts.append(content.text)
    return "\n\n".join(texts)
