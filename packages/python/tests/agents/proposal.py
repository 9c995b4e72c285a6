"""The example of the ClaudeCodeAgent proposal, with another import."""

from linkspan.openhands import ClaudeCodeAgent
from openhands.sdk.llm import LLM
from openhands.sdk import Conversation, Message, TextContent

agent = ClaudeCodeAgent(llm=LLM(model="claude-code"), tools=[], allowed_tools=["Bash", "Read", "Write"])  # type: ignore[call-arg]
conv = Conversation(agent)

conv.send_message(Message(role="user", content=[TextContent(text="Say hello.")]))
conv.run()
