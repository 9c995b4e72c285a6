"""A program with one wrong line: such a run has no such key."""

from __future__ import annotations

import linkspan

for event in linkspan.events("run.jsonl"):
    if event["type"] == "run.ended":
        print(event["data"]["outcome"])
        print(event["data"]["result"])
