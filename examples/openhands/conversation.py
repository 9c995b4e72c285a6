"""A conversation of the OpenHands SDK, held by any agent that linkspan runs.

The `Conversation` API stays as it is; only the agent is another one. `ACPAgent` starts a command and
speaks the Agent Client Protocol with it, and `linkspan acp` is such a command for every engine.

usage: conversation.py [--command COMMAND] PROMPT...

Each prompt is a turn of the same conversation, and each answer is printed. Python 3.12 and
`pip install openhands-sdk==1.58.0`.
"""

import argparse
import os
import shlex
import sys

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # Spares a download of prices.
os.environ.setdefault("OPENHANDS_SUPPRESS_BANNER", "1")

import litellm  # noqa: E402, F401  Before the SDK: its lazy imports have deadlocked otherwise.
from openhands.sdk import Conversation, Message, TextContent  # noqa: E402
from openhands.sdk.agent import ACPAgent  # noqa: E402
from openhands.sdk.conversation.response_utils import get_agent_final_response  # noqa: E402
from openhands.sdk.event import ACPToolCallEvent  # noqa: E402


def tell(event):
    """Shows each call of a tool when it has ended; the answer comes at the end of the turn."""
    if isinstance(event, ACPToolCallEvent) and event.status in ("completed", "failed"):
        print(f"[{event.status}] {event.title}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", default="linkspan acp --engine claude")
    parser.add_argument("prompts", metavar="PROMPT", nargs="+")
    args = parser.parse_args()

    agent = ACPAgent(acp_command=shlex.split(args.command))
    conversation = Conversation(
        agent=agent, workspace=os.getcwd(), callbacks=[tell], visualizer=None
    )
    try:
        for prompt in args.prompts:
            message = Message(role="user", content=[TextContent(text=prompt)])
            conversation.send_message(message)
            conversation.run()
            print(get_agent_final_response(conversation.state.events))
    finally:
        conversation.close()


if __name__ == "__main__":
    main()
