"""A program that type checkers accept."""

from __future__ import annotations

import linkspan
from linkspan.types import Item


def title(item: Item) -> str:
    if item["kind"] == "tool":
        return item["class"]["title"]
    if item["kind"] == "message" and item["role"] == "assistant":
        return item["text"]
    return item["id"]


def main() -> None:
    for event in linkspan.run("fix the test", engine="claude", permissions="listed"):
        if event["type"] == "item.closed":
            print(event["data"]["status"], title(event["data"]["item"]))
        elif event["type"] == "run.ended":
            print(event["data"].get("answer", ""), event["data"]["outcome"])


async def later() -> None:
    async with linkspan.Conversation(engine="codex", cwd=".") as conversation:
        async for event in conversation.send("fix the test"):
            if event["type"] == "ask.opened":
                await conversation.settle(event, "allow")
        answer: str | None = (await conversation.send("and now?").result()).get("answer")
        print(answer)
