"""The canonical events of linkspan, as types.

Written by `generate_types.py` from `docs/linkspan.schema.json`; do not edit. `Event` is the union
of all events, and its `type` tells them apart. A later version of linkspan may add keys.
"""

# ruff: noqa: E501

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

AskId = str
"""An open question of the agent."""

AskKind = Literal["permission", "question", "plan"]

Basis = Literal["delta", "cumulative"]

Binding = Literal["fork", "init", "resume", "repeat", "mismatch"]
"""How a native session came to be known."""

Cause = Literal["prompt", "wake_up"]

Change = Literal["add", "update", "delete"]

Channel = Literal["text", "input", "output"]

Decision = Literal["allowed", "allowed_always", "denied", "withdrawn", "lost"]

ItemId = str
"""Something with a life inside a session; a tool call's id is the agent's own call id."""

Level = Literal["debug", "info", "warning", "error"]

Origin = Literal["agent", "linkspan", "client"]
"""Who caused an event."""

Outcome = Literal["completed", "failed", "aborted", "refused", "limit", "lost"]

PlanStatus = Literal["pending", "in_progress", "completed"]

Role = Literal["user", "assistant", "harness"]

RunId = str
"""One prompt cycle of a session."""

Scope = Literal["run", "session", "call"]

SessionId = str
"""A session: linkspan's own in an envelope, the agent's in `session.bound`."""

Status = Literal["ok", "error", "denied", "cancelled", "lost"]
"""How an item's life ended."""

ToolKind = Literal["shell", "read", "edit", "write", "delete", "move", "search", "fetch", "web_search", "mcp", "task", "todo", "ask", "think", "other", "mode"]

Why = Literal["process_exit", "missing_end", "abort", "left_open", "never_opened", "wrong_session", "damaged", "deadline"]
"""Why linkspan made an event up."""

class _AskRequired(TypedDict):
    id: AskId
    kind: AskKind
    title: str
    """One line for people; never empty."""
    tool: str


class Ask(_AskRequired, total=False):
    """An open question; exactly one `ask.settled` follows."""

    deadline: Deadline
    """When linkspan answers it by itself, unless a client has by then; without one it waits for ever."""
    description: str
    input: Any
    item: ItemId
    """The tool call it is about."""
    suggestions: Any
    """Rules the agent offers to remember with a lasting permission."""


class _AskSettledRequired(TypedDict):
    decision: Decision
    id: AskId


class AskSettled(_AskSettledRequired, total=False):
    """The one end of an ask."""

    input: Any
    """The input that runs instead, or the answers."""
    message: str
    remembered: Any
    """The rules that were remembered."""


class _ClassRequired(TypedDict):
    kind: ToolKind
    title: str
    """One line for people; never empty. Paths in it are relative to the working directory."""


class Class(_ClassRequired, total=False):
    """The classification of a tool call, shared by all writers."""

    change: Change
    """What happened to the file, as far as it is known."""
    command: str
    diffs: list[Diff]
    exit_code: int
    mcp: Mcp
    paths: list[Location]
    query: str
    """Search terms, a pattern or a URL."""


class _CompactionRequired(TypedDict):
    id: ItemId


class Compaction(_CompactionRequired, total=False):
    """The agent replaced the early part of the conversation by a summary."""

    detail: Any
    summary: str
    tokens_after: int
    tokens_before: int
    trigger: str


class Deadline(TypedDict):
    """When an ask without an answer is settled, and how."""

    at: str
    decision: Decision
    """Either `allowed` or `denied`."""


class Delta(TypedDict):
    """A piece of an open item; the pieces of a channel add up to the content of `item.closed`."""

    channel: Channel
    item: ItemId
    text: str


class _DenialRequired(TypedDict):
    tool: str


class Denial(_DenialRequired, total=False):
    """A tool call that was not allowed."""

    input: Any
    item: ItemId


class _DiffRequired(TypedDict):
    new: str
    path: str


class Diff(_DiffRequired, total=False):
    """A replacement in a file; no old text means the whole file is new."""

    old: str


class ItemClosed(TypedDict):
    """The whole item at the end of its life."""

    item: Item
    status: Status


class _LocationRequired(TypedDict):
    path: str


class Location(_LocationRequired, total=False):
    """A place in a file; lines count from 1."""

    line: int


class Mcp(TypedDict):
    server: str
    tool: str


class _McpServerRequired(TypedDict):
    name: str


class McpServer(_McpServerRequired, total=False):
    status: str


class _MessageRequired(TypedDict):
    id: ItemId
    role: Role
    text: str


class Message(_MessageRequired, total=False):
    """Text with its images and files."""

    group: str
    """The model response this is a part of; items of one response share it."""
    parts: list[Part]


class _ModelUsageRequired(TypedDict):
    model: str
    tokens: Tokens


class ModelUsage(_ModelUsageRequired, total=False):
    context_window: int
    cost_usd: float


class _NoticeRequired(TypedDict):
    code: str
    """A stable code for programs, such as `bad_line` or `api_retry`."""
    level: Level
    text: str


class Notice(_NoticeRequired, total=False):
    """Something worth showing that is no item: a bad line, a retry, a rate limit, a hook, a status."""

    detail: Any
    """The agent's own message, verbatim."""
    item: ItemId
    """The item it speaks of."""


class _OtherRequired(TypedDict):
    data: Any
    id: ItemId
    name: str


class Other(_OtherRequired, total=False):
    """An item of a kind the model has no type for."""

    text: str


class Plan(TypedDict):
    """A list of things to do; each update carries the whole list."""

    entries: list[PlanEntry]
    id: ItemId


class _PlanEntryRequired(TypedDict):
    status: PlanStatus
    text: str


class PlanEntry(_PlanEntryRequired, total=False):
    doing: str
    """What to show while it is being done, such as "Running the tests"."""
    key: str
    """The agent's own id of the entry."""


class _ReasoningRequired(TypedDict):
    id: ItemId
    text: str


class Reasoning(_ReasoningRequired, total=False):
    """The model's reasoning before its answer."""

    encrypted: str
    """Thinking the provider hides: only its own model can read it."""
    group: str
    signature: str


class _RunEndedRequired(TypedDict):
    outcome: Outcome


class RunEnded(_RunEndedRequired, total=False):
    """The one end of a run."""

    answer: str
    """The final answer; for a failed run, its last text."""
    denials: list[Denial]
    detail: Any
    """The agent's own last frame of the run."""
    duration_ms: int
    error: RunError
    models: list[ModelUsage]
    """Tokens by model in this run, sub-agents included."""
    session_cost_usd: float
    """What the session has cost so far, in US dollars."""
    stop_reason: str
    """The model's own stop reason."""
    usage: Usage
    """Tokens of the main agent in this run."""


class _RunErrorRequired(TypedDict):
    code: str
    """A stable code for programs, the same for every agent, such as `rate_limited` or `crashed`."""
    message: str


class RunError(_RunErrorRequired, total=False):
    native: str
    """The agent's own error code, if it differs."""


class _RunStartedRequired(TypedDict):
    cause: Cause


class RunStarted(_RunStartedRequired, total=False):
    """A prompt cycle begins."""

    prompt: int
    """The number that a server gave the prompt when it took it."""


class _SessionBoundRequired(TypedDict):
    how: Binding
    native: SessionId


class SessionBound(_SessionBoundRequired, total=False):
    """The agent's own session is known, or reported more about itself."""

    commands: list[str]
    cwd: str
    mcp_servers: list[McpServer]
    model: str
    permission_mode: str
    tools: list[str]
    version: str


class _SubagentRequired(TypedDict):
    call: ItemId
    """The tool call that started it."""
    id: ItemId
    name: str
    """What kind of agent it is, such as `general-purpose`."""


class Subagent(_SubagentRequired, total=False):
    """An agent that an agent started; what it does carries its call id in the path."""

    background: bool
    """It runs in the background while its parent continues."""
    description: str
    detail: Any
    prompt: str
    report: str
    """Its final report."""


class _TokensRequired(TypedDict):
    cache_read: int
    cache_write: int
    input: int
    """Input that was neither read from nor written to a cache."""


class Tokens(_TokensRequired, total=False):
    """Token counts. The parts of the input are disjoint; reasoning is a part of the output."""

    output: int
    """Absent when the agent does not know it yet."""
    reasoning: int


_ToolRequired = TypedDict(
    "_ToolRequired",
    {
        "class": "Class",
        "id": "ItemId",
        "name": "str",
    },
)


class Tool(_ToolRequired, total=False):
    """One call of a tool. The agent's own name and input stay beside the classification."""

    group: str
    input: Any
    """The whole input; absent while it is still streaming."""
    result: ToolResult
    server_side: bool
    """The provider runs it, not the agent."""


class _ToolResultRequired(TypedDict):
    content: Any
    """A JSON string, or an array of content blocks."""


class ToolResult(_ToolResultRequired, total=False):
    """A tool's result."""

    is_error: bool
    meta: Any
    """The agent's report of how it was allowed or denied."""
    structured: Any
    """The structured form some agents send along."""


class Unmapped(TypedDict):
    """A frame or block that no rule knows; its bytes are preserved."""

    raw: Any
    what: str
    """What was unknown, such as ``type `foo` ``."""


class _UsageRequired(TypedDict):
    basis: Basis
    scope: Scope
    tokens: Tokens


class Usage(_UsageRequired, total=False):
    """Tokens and cost, with what they cover."""

    cost_usd: float
    detail: Any
    """The agent's own numbers, unchanged."""
    model: str


class _EnvelopeRequired(TypedDict):
    engine: str
    origin: Origin
    seq: int
    """The only cursor: contiguous per session, from 1."""
    session: SessionId
    v: Literal[1]
    """The version of the format."""


class Envelope(_EnvelopeRequired, total=False):
    """What every event has."""

    at: str
    """The time, if the agent or a live clock reported it."""
    extra: dict[str, Any]
    """The frame's other fields, on the first event that came from it."""
    frame: int
    """The number of the input frame, from 1; absent when the event came from no frame."""
    native: str
    """The agent's own id of that frame."""
    path: list[ItemId]
    """The sub-agents this happened inside, outermost first, by the id of the call that started each."""
    run: RunId
    """The run this belongs to; absent between runs."""
    why: Why
    """Why linkspan made this event up."""


class MessageItem(Message):
    kind: Literal["message"]


class ReasoningItem(Reasoning):
    kind: Literal["reasoning"]


class ToolItem(Tool):
    kind: Literal["tool"]


class PlanItem(Plan):
    kind: Literal["plan"]


class SubagentItem(Subagent):
    kind: Literal["subagent"]


class CompactionItem(Compaction):
    kind: Literal["compaction"]


class OtherItem(Other):
    kind: Literal["other"]


class Image(TypedDict):
    data: str
    media_type: str


class ImagePart(TypedDict):
    """Base64 data with its media type."""

    image: Image


class ImageUrl(TypedDict):
    url: str


class ImageUrlPart(TypedDict):
    """A picture somewhere else."""

    image_url: ImageUrl


class OtherPart(TypedDict):
    """Any other block, as it came."""

    other: Any


class SessionBoundEvent(Envelope):
    data: SessionBound
    type: Literal["session.bound"]


class RunStartedEvent(Envelope):
    data: RunStarted
    type: Literal["run.started"]


class RunEndedEvent(Envelope):
    data: RunEnded
    type: Literal["run.ended"]


class ItemOpenedEvent(Envelope):
    data: Item
    type: Literal["item.opened"]


class ItemUpdatedEvent(Envelope):
    """More is known of an open item: a tool's whole input, a plan's new entries."""

    data: Item
    type: Literal["item.updated"]


class ItemDeltaEvent(Envelope):
    data: Delta
    type: Literal["item.delta"]


class ItemClosedEvent(Envelope):
    data: ItemClosed
    type: Literal["item.closed"]


class AskOpenedEvent(Envelope):
    data: Ask
    type: Literal["ask.opened"]


class AskSettledEvent(Envelope):
    data: AskSettled
    type: Literal["ask.settled"]


class UsageReportedEvent(Envelope):
    data: Usage
    type: Literal["usage.reported"]


class NoticeRaisedEvent(Envelope):
    data: Notice
    type: Literal["notice.raised"]


class FrameUnmappedEvent(Envelope):
    data: Unmapped
    type: Literal["frame.unmapped"]


Item = Union[MessageItem, ReasoningItem, ToolItem, PlanItem, SubagentItem, CompactionItem, OtherItem]
"""A thing with a life inside a run."""

Part = Union[ImagePart, ImageUrlPart, OtherPart]
"""A piece of content that is not text."""

Event = Union[SessionBoundEvent, RunStartedEvent, RunEndedEvent, ItemOpenedEvent, ItemUpdatedEvent, ItemDeltaEvent, ItemClosedEvent, AskOpenedEvent, AskSettledEvent, UsageReportedEvent, NoticeRaisedEvent, FrameUnmappedEvent]
"""One fact about a session."""
