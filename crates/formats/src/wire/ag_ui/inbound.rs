//! AG-UI events as they are read: 1.0, the versions before it, and what our own writer adds.

use crate::wire::lenient::{Any, Flag, List, Num, Str};

object! {
    /// One event of any type.
    Line {
        r#type: Str<'a> = "type",
        timestamp: Num = "timestamp",
        metadata: Any<'a> = "metadata",
        subagent_run_id: Str<'a> = "subagentRunId",
        thread_id: Str<'a> = "threadId",
        run_id: Str<'a> = "runId",
        input: Any<'a> = "input",
        result: Any<'a> = "result",
        outcome: Any<'a> = "outcome",
        usage: Any<'a> = "usage",
        message: Any<'a> = "message",
        code: Str<'a> = "code",
        step_name: Str<'a> = "stepName",
        message_id: Str<'a> = "messageId",
        role: Str<'a> = "role",
        delta: Any<'a> = "delta",
        name: Str<'a> = "name",
        tool_call_id: Str<'a> = "toolCallId",
        tool_call_name: Str<'a> = "toolCallName",
        parent_message_id: Str<'a> = "parentMessageId",
        content: Any<'a> = "content",
        subtype: Str<'a> = "subtype",
        entity_id: Str<'a> = "entityId",
        encrypted_value: Any<'a> = "encryptedValue",
        snapshot: Any<'a> = "snapshot",
        messages: Any<'a> = "messages",
        activity_type: Str<'a> = "activityType",
        patch: Any<'a> = "patch",
        event: Any<'a> = "event",
        source: Str<'a> = "source",
        value: Any<'a> = "value",
        description: Any<'a> = "description",
        parent_subagent_run_id: Str<'a> = "parentSubagentRunId",
        parent_tool_call_id: Str<'a> = "parentToolCallId",
        protocol_version: Str<'a> = "protocolVersion",
    }

    Metadata {
        phase: Any<'a> = "phase",
        refusal: Any<'a> = "refusal",
        annotations: List<Any<'a>> = "annotations",
        linkspan: Own<'a> = "linkspan",
    }

    /// What our own writer adds under its own key.
    Own {
        outcome: Str<'a> = "outcome",
        code: Str<'a> = "code",
        status: Str<'a> = "status",
        kind: Str<'a> = "kind",
        text: Any<'a> = "text",
        parts: Any<'a> = "parts",
        server_side: Flag = "serverSide",
        block: Flag = "block",
        stop_reason: Str<'a> = "stopReason",
        session_cost_usd: Num = "sessionCostUsd",
        duration_ms: Num = "durationMs",
    }

    /// How our own writer sums a run up.
    Summary {
        status: Str<'a> = "status",
        reason: Str<'a> = "reason",
        stop_reason: Str<'a> = "stopReason",
        session_cost_usd: Num = "sessionCostUsd",
        duration_ms: Num = "durationMs",
    }

    Outcome {
        r#type: Str<'a> = "type",
        pending_tool_call_ids: List<Str<'a>> = "pendingToolCallIds",
        interrupts: List<Any<'a>> = "interrupts",
    }

    Interrupt {
        id: Str<'a> = "id",
        reason: Str<'a> = "reason",
        message: Any<'a> = "message",
        tool_call_id: Str<'a> = "toolCallId",
        response_schema: Any<'a> = "responseSchema",
        subagent_run_id: Str<'a> = "subagentRunId",
    }

    TokenUsage {
        model: Str<'a> = "model",
        input_tokens: Num = "inputTokens",
        output_tokens: Num = "outputTokens",
        reasoning_tokens: Num = "reasoningTokens",
        cached_input_tokens: Num = "cachedInputTokens",
        cache_write_input_tokens: Num = "cacheWriteInputTokens",
    }

    Input {
        messages: Any<'a> = "messages",
    }

    /// A message of a snapshot, of any role.
    Message {
        id: Str<'a> = "id",
        role: Str<'a> = "role",
        content: Any<'a> = "content",
        tool_calls: List<ToolCall<'a>> = "toolCalls",
        tool_call_id: Str<'a> = "toolCallId",
        error: Any<'a> = "error",
        encrypted_value: Any<'a> = "encryptedValue",
        activity_type: Str<'a> = "activityType",
        subagent_run_id: Str<'a> = "subagentRunId",
    }

    ToolCall {
        id: Str<'a> = "id",
        function: Function<'a> = "function",
    }

    Function {
        name: Str<'a> = "name",
        arguments: Any<'a> = "arguments",
    }

    ContentPart {
        r#type: Str<'a> = "type",
        text: Any<'a> = "text",
        metadata: Any<'a> = "metadata",
        source: Source<'a> = "source",
    }

    Source {
        r#type: Str<'a> = "type",
        value: Any<'a> = "value",
        mime_type: Str<'a> = "mimeType",
    }

    Plan {
        entries: List<PlanEntry<'a>> = "entries",
    }

    PlanEntry {
        content: Any<'a> = "content",
        status: Str<'a> = "status",
        doing: Any<'a> = "doing",
    }

    Session {
        engine: Any<'a> = "engine",
        session_id: Str<'a> = "sessionId",
        model: Str<'a> = "model",
        cwd: Str<'a> = "cwd",
        permission_mode: Str<'a> = "permissionMode",
        version: Str<'a> = "version",
        tools: List<Str<'a>> = "tools",
        mcp_servers: List<McpServer<'a>> = "mcpServers",
        commands: List<Str<'a>> = "commands",
    }

    McpServer {
        name: Str<'a> = "name",
        status: Str<'a> = "status",
    }

    Notice {
        level: Str<'a> = "level",
        code: Str<'a> = "code",
        text: Any<'a> = "text",
        item_id: Str<'a> = "itemId",
        detail: Any<'a> = "detail",
    }

    Ask {
        id: Str<'a> = "id",
        kind: Str<'a> = "kind",
        tool_call_id: Str<'a> = "toolCallId",
        tool_call_name: Str<'a> = "toolCallName",
        title: Any<'a> = "title",
        description: Any<'a> = "description",
        input: Any<'a> = "input",
        suggestions: Any<'a> = "suggestions",
        deadline: Any<'a> = "deadline",
    }

    AskSettled {
        id: Str<'a> = "id",
        decision: Str<'a> = "decision",
        message: Any<'a> = "message",
        input: Any<'a> = "input",
        remembered: Any<'a> = "remembered",
    }

    Compaction {
        id: Str<'a> = "id",
        status: Str<'a> = "status",
        trigger: Str<'a> = "trigger",
        summary: Any<'a> = "summary",
        tokens_before: Num = "tokensBefore",
        tokens_after: Num = "tokensAfter",
    }

    Item {
        id: Str<'a> = "id",
        name: Str<'a> = "name",
        status: Str<'a> = "status",
        text: Any<'a> = "text",
        data: Any<'a> = "data",
    }
}
