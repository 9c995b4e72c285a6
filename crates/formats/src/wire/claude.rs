//! Claude Code's stream-json, as observed from 2.1.325; every field name is one it printed.
//!
//! One flat struct for every line, because `type` may come last. Only what most lines hold is read
//! in the first pass; rarer lines (`result`, `system`, control frames) are parsed again by their own
//! struct. The repackaged messages of the Agent SDKs are the same objects without their `type`s.

pub(crate) mod output;

use super::lenient::{Any, Boxed, Flag, List, Map, Num, Str, Words};

object! {
    /// Any line of the stream.
    Line {
        [
            r#type = "type",
            subtype = "subtype",
            session_id = "session_id",
            uuid = "uuid",
            timestamp = "timestamp",
            parent_tool_use_id = "parent_tool_use_id",
            // By this a streamed piece is matched with its message.
            api_message_id = "api_message_id",
            // An object, or a string where the call failed.
            tool_use_result = "tool_use_result",
            tool_result_meta = "tool_result_meta",
            // Claude Code speaks to its model: these are not the user's words.
            is_synthetic = "isSynthetic",
            is_replay = "isReplay",
            // Such a message looks like an answer, and is none.
            is_api_error_message = "is_api_error_message",
            aborted = "aborted",
            // The Agent SDKs' messages have these at the top, and `content`.
            model = "model",
            data = "data",
        ]
        message: Boxed<Message<'a>> = "message",
        event: StreamEvent<'a> = "event",
        content: Words<'a, Block<'a>> = "content",
    }

    Message {
        [
            id = "id",
            r#type = "type",
            role = "role",
            model = "model",
            // Repeated with every block of a message: it must not be summed.
            usage = "usage",
        ]
        content: Words<'a, Block<'a>> = "content",
    }

    /// A content block of any type.
    Block {
        [
            r#type = "type",
            text = "text",
            thinking = "thinking",
            signature = "signature",
            data = "data",
            id = "id",
            name = "name",
            input = "input",
            tool_use_id = "tool_use_id",
            content = "content",
            // Absent means that the call succeeded.
            is_error = "is_error",
            source = "source",
        ]
    }

    ImageSource {
        r#type: Str<'a> = "type",
        media_type: Str<'a> = "media_type",
        data: Any<'a> = "data",
        url: Any<'a> = "url",
    }

    /// The Messages API's own event inside a `stream_event`.
    StreamEvent {
        [
            r#type = "type",
            index = "index",
            usage = "usage",
        ]
        content_block: Boxed<Block<'a>> = "content_block",
        delta: BlockDelta<'a> = "delta",
        message: Boxed<Message<'a>> = "message",
    }

    BlockDelta {
        [
            r#type = "type",
            text = "text",
            thinking = "thinking",
            signature = "signature",
            partial_json = "partial_json",
        ]
    }

    /// A line of the type `error`; Claude Code prints none, programs around it do.
    ErrorLine {
        message: Any<'a> = "message",
        error: Any<'a> = "error",
    }

    ErrorBody {
        r#type: Str<'a> = "type",
        message: Any<'a> = "message",
    }

    /// `system` / `init`.
    Init {
        r#type: Str<'a> = "type",
        subtype: Str<'a> = "subtype",
        session_id: Str<'a> = "session_id",
        uuid: Str<'a> = "uuid",
        cwd: Str<'a> = "cwd",
        model: Str<'a> = "model",
        permission_mode: Str<'a> = "permissionMode",
        version: Str<'a> = "claude_code_version",
        // Qwen Code prints the same line.
        qwen_version: Str<'a> = "qwen_code_version",
        qwen_mode: Str<'a> = "permission_mode",
        tools: List<Str<'a>> = "tools",
        mcp_servers: Any<'a> = "mcp_servers",
        slash_commands: List<Str<'a>> = "slash_commands",
    }

    McpServer {
        name: Str<'a> = "name",
        status: Str<'a> = "status",
    }

    /// Any other `system` line.
    System {
        status: Str<'a> = "status",
        permission_mode: Str<'a> = "permissionMode",
        attempt: Num = "attempt",
        max_retries: Num = "max_retries",
        retry_delay_ms: Num = "retry_delay_ms",
        error_status: Num = "error_status",
        error: Str<'a> = "error",
        tool_name: Str<'a> = "tool_name",
        tool_use_id: Str<'a> = "tool_use_id",
        message: Any<'a> = "message",
        task_id: Str<'a> = "task_id",
        task_type: Str<'a> = "task_type",
        parent_task_id: Str<'a> = "parent_task_id",
        description: Any<'a> = "description",
        subagent_type: Str<'a> = "subagent_type",
        prompt: Any<'a> = "prompt",
        is_backgrounded: Flag = "is_backgrounded",
        summary: Any<'a> = "summary",
        hook_name: Str<'a> = "hook_name",
        outcome: Str<'a> = "outcome",
        compact_metadata: CompactMetadata<'a> = "compact_metadata",
        content: Any<'a> = "content",
        level: Str<'a> = "level",
    }

    CompactMetadata {
        trigger: Str<'a> = "trigger",
        pre_tokens: Num = "pre_tokens",
        post_tokens: Num = "post_tokens",
    }

    /// The end of a turn.
    Outcome {
        subtype: Str<'a> = "subtype",
        is_error: Flag = "is_error",
        result: Any<'a> = "result",
        // Why a turn failed; where the API failed, that is in `result` instead.
        errors: List<Any<'a>> = "errors",
        error: Any<'a> = "error",
        terminal_reason: Str<'a> = "terminal_reason",
        stop_reason: Str<'a> = "stop_reason",
        session_id: Str<'a> = "session_id",
        duration_ms: Num = "duration_ms",
        total_cost_usd: Num = "total_cost_usd",
        usage: Any<'a> = "usage",
        // Counts sub-agents as well, which `usage` does not.
        model_usage: Map<'a, ModelUsage<'a>> = "modelUsage",
        model_usage_delta: Map<'a, ModelUsage<'a>> = "model_usage_since_last_result",
        permission_denials: List<PermissionDenial<'a>> = "permission_denials",
        queued_turn_count: Num = "queued_turn_count",
        // Only where a background task has woken the model.
        origin: Any<'a> = "origin",
    }

    /// Snake case, as the Messages API spells it.
    Usage {
        input_tokens: Num = "input_tokens",
        cache_creation_input_tokens: Num = "cache_creation_input_tokens",
        cache_read_input_tokens: Num = "cache_read_input_tokens",
        output_tokens: Num = "output_tokens",
        output_tokens_details: UsageDetails<'a> = "output_tokens_details",
    }

    UsageDetails {
        thinking_tokens: Num = "thinking_tokens",
    }

    /// Camel case, as the CLI counts per model.
    ModelUsage {
        input_tokens: Num = "inputTokens",
        output_tokens: Num = "outputTokens",
        cache_read: Num = "cacheReadInputTokens",
        cache_write: Num = "cacheCreationInputTokens",
        thinking_tokens: Num = "thinkingTokens",
        cost_usd: Num = "costUSD",
        context_window: Num = "contextWindow",
    }

    PermissionDenial {
        tool_name: Str<'a> = "tool_name",
        tool_use_id: Str<'a> = "tool_use_id",
        tool_input: Any<'a> = "tool_input",
    }

    RateLimitLine {
        info: RateLimitInfo<'a> = "rate_limit_info",
    }

    RateLimitInfo {
        status: Str<'a> = "status",
        kind: Str<'a> = "rateLimitType",
        utilization: Num = "utilization",
    }

    /// `control_request`, `control_response`, `control_cancel_request`.
    Control {
        request_id: Str<'a> = "request_id",
        request: ControlRequest<'a> = "request",
        response: ControlResponse<'a> = "response",
    }

    ControlRequest {
        subtype: Str<'a> = "subtype",
        tool_name: Str<'a> = "tool_name",
        tool_use_id: Str<'a> = "tool_use_id",
        input: Any<'a> = "input",
        description: Any<'a> = "description",
        permission_suggestions: Any<'a> = "permission_suggestions",
    }

    ControlResponse {
        subtype: Str<'a> = "subtype",
        request_id: Str<'a> = "request_id",
        response: PermissionAnswer<'a> = "response",
        error: Any<'a> = "error",
    }

    PermissionAnswer {
        behavior: Str<'a> = "behavior",
        message: Any<'a> = "message",
        updated_input: Any<'a> = "updatedInput",
        updated_permissions: Any<'a> = "updatedPermissions",
    }

    ToolResultMeta {
        id: Str<'a> = "id",
        // Present where the tool did not run.
        non_execution_kind: Str<'a> = "non_execution_kind",
        permission_decision: PermissionDecision<'a> = "permission_decision",
    }

    PermissionDecision {
        decision: Str<'a> = "decision",
        source: Str<'a> = "source",
    }

    /// The structured form of a tool result, as far as it holds more than the text.
    ToolUseResult {
        r#type: Str<'a> = "type",
        original_file: Any<'a> = "originalFile",
        old_source: Any<'a> = "old_source",
        // The agent works in the background: this result only says that it was started.
        is_async: Flag = "isAsync",
        task: Task<'a> = "task",
    }

    Task {
        id: Str<'a> = "id",
        subject: Any<'a> = "subject",
    }
}
