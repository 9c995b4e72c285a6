"""A program with one wrong line: an outcome is no number."""

from __future__ import annotations

import linkspan

for event in linkspan.events("run.jsonl"):
    if event["type"] == "run.ended":
        number: int = event["data"]["outcome"]
        print(number)
