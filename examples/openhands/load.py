"""Puts events that linkspan wrote into an event log of the OpenHands SDK, and reads them back.

usage: linkspan run --to openhands "fix the tests" > run.jsonl
       load.py run.jsonl DIR

DIR is then what the SDK keeps of a conversation: one file per event. What the model would be sent of
it is printed, one line per message. Python 3.12 and `pip install openhands-sdk==1.58.0`.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # Spares a download of prices.
os.environ.setdefault("OPENHANDS_SUPPRESS_BANNER", "1")

import litellm  # noqa: E402, F401  Before the SDK: its lazy imports have deadlocked otherwise.
from openhands.sdk.conversation.event_store import EventLog  # noqa: E402
from openhands.sdk.event import (  # noqa: E402
    Event,
    LLMConvertibleEvent,
    StreamingDeltaEvent,
)
from openhands.sdk.io import LocalFileStore  # noqa: E402
from openhands.sdk.llm import content_to_str  # noqa: E402


def main(path, folder):
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    events = [Event.model_validate_json(line) for line in lines]
    # Text as it was written is for those who watch; the SDK keeps none of it either.
    events = [event for event in events if not isinstance(event, StreamingDeltaEvent)]
    log = EventLog(LocalFileStore(folder))
    for event in events:
        log.append(event)

    again = list(EventLog(LocalFileStore(folder)))
    if again != events:
        sys.exit("the log does not hold what was put into it")
    said = [event for event in again if isinstance(event, LLMConvertibleEvent)]
    for message in LLMConvertibleEvent.events_to_messages(said):
        words = " ".join(content_to_str(message.content)).split()
        calls = [call.name for call in message.tool_calls or []]
        parts = [message.role, *calls, " ".join(words)[:60].rstrip()]
        print(": ".join(filter(None, parts)))


if __name__ == "__main__":
    main(*sys.argv[1:])
