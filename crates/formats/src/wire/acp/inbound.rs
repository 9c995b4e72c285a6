//! Agent Client Protocol as it is read: both sides of a JSON-RPC log, version 1 and the draft of 2.

use crate::wire::lenient::{Any, Boxed, Flag, List, Num, Str};

object! {
    /// A message of either side, the parameters of an update, or an update by itself.
    Line {
        jsonrpc: Str<'a> = "jsonrpc",
        id: Any<'a> = "id",
        method: Str<'a> = "method",
        params: Any<'a> = "params",
        result: Any<'a> = "result",
        error: Any<'a> = "error",
        session_id: Str<'a> = "sessionId",
        update: Any<'a> = "update",
        session_update: Str<'a> = "sessionUpdate",
        meta: Any<'a> = "_meta",
    }

    /// `session/update`, which comes by the thousand: read in one go, without a stop at the parameters.
    Notification {
        [
            jsonrpc = "jsonrpc",
            id = "id",
            method = "method",
        ]
        params: UpdateParams<'a> = "params",
    }

    UpdateParams {
        [
            session_id = "sessionId",
            meta = "_meta",
        ]
        update: Boxed<Update<'a>> = "update",
    }

    /// The parameters of requests and notifications, of all methods together.
    Params {
        session_id: Str<'a> = "sessionId",
        update: Any<'a> = "update",
        cwd: Str<'a> = "cwd",
        prompt: Any<'a> = "prompt",
        tool_call: Any<'a> = "toolCall",
        options: Any<'a> = "options",
        message: Any<'a> = "message",
        mode_id: Str<'a> = "modeId",
        request_id: Any<'a> = "requestId",
        protocol_version: Num = "protocolVersion",
        meta: Any<'a> = "_meta",
    }

    /// The results of requests, of all methods together.
    Outcome {
        session_id: Str<'a> = "sessionId",
        stop_reason: Str<'a> = "stopReason",
        // Unstable in the schema, but the adapters for Claude Code and Codex send it.
        usage: Any<'a> = "usage",
        outcome: Any<'a> = "outcome",
        action: Str<'a> = "action",
        content: Any<'a> = "content",
        protocol_version: Num = "protocolVersion",
        agent_info: AgentInfo<'a> = "agentInfo",
        // The name of `agentInfo` in the draft of version 2.
        info: AgentInfo<'a> = "info",
        modes: Modes<'a> = "modes",
        // Of agents from before there were config options.
        models: Models<'a> = "models",
        config_options: List<ConfigOption<'a>> = "configOptions",
        // In version 2 a prompt is answered with this at once, and its turn goes on.
        message_id: Str<'a> = "messageId",
        meta: Any<'a> = "_meta",
    }

    AgentInfo {
        name: Str<'a> = "name",
        version: Str<'a> = "version",
    }

    Modes {
        current: Str<'a> = "currentModeId",
    }

    Models {
        current: Str<'a> = "currentModelId",
    }

    ConfigOption {
        id: Str<'a> = "id",
        category: Str<'a> = "category",
        current: Str<'a> = "currentValue",
    }

    Selected {
        outcome: Str<'a> = "outcome",
        option_id: Str<'a> = "optionId",
    }

    PermissionOption {
        option_id: Str<'a> = "optionId",
        kind: Str<'a> = "kind",
    }

    Error {
        code: Num = "code",
        message: Any<'a> = "message",
        data: Any<'a> = "data",
    }

    /// linkspan's additions to an error: the agent's error code, or `lost` when unknown.
    ErrorData {
        code: Str<'a> = "code",
        outcome: Str<'a> = "outcome",
        details: Str<'a> = "details",
    }

    /// An update, of all kinds together.
    Update {
        session_update: Str<'a> = "sessionUpdate",
        content: Any<'a> = "content",
        message_id: Str<'a> = "messageId",
        tool_call_id: Str<'a> = "toolCallId",
        title: Any<'a> = "title",
        // Copilot, Qwen Code, OpenCode and Gemini leave it out.
        name: Str<'a> = "name",
        kind: Str<'a> = "kind",
        status: Str<'a> = "status",
        locations: Any<'a> = "locations",
        // Qwen Code sends `{}` here, and the input with its request for a permission.
        raw_input: Any<'a> = "rawInput",
        raw_output: Any<'a> = "rawOutput",
        entries: Any<'a> = "entries",
        available_commands: List<Command<'a>> = "availableCommands",
        current_mode_id: Str<'a> = "currentModeId",
        config_options: List<ConfigOption<'a>> = "configOptions",
        used: Num = "used",
        size: Num = "size",
        cost: Cost<'a> = "cost",
        severity: Str<'a> = "severity",
        description: Any<'a> = "description",
        compaction_id: Str<'a> = "compactionId",
        summary: Any<'a> = "summary",
        error: Any<'a> = "error",
        // In version 2 the end of a turn is a change of state.
        state: Str<'a> = "state",
        stop_reason: Str<'a> = "stopReason",
        updated_at: Str<'a> = "updatedAt",
        meta: Any<'a> = "_meta",
    }

    PlanEntry {
        content: Any<'a> = "content",
        status: Str<'a> = "status",
        priority: Str<'a> = "priority",
    }

    Command {
        name: Str<'a> = "name",
    }

    Cost {
        amount: Num = "amount",
        currency: Str<'a> = "currency",
    }

    Location {
        path: Any<'a> = "path",
        line: Num = "line",
    }

    ToolContent {
        r#type: Str<'a> = "type",
        content: Any<'a> = "content",
        path: Any<'a> = "path",
        old_text: Any<'a> = "oldText",
        // OpenHands stores the blocks of an ACP agent in snake case.
        old_text_snake: Any<'a> = "old_text",
        new_text: Any<'a> = "newText",
        new_text_snake: Any<'a> = "new_text",
    }

    /// A text, which most contents are.
    PlainContent {
        [
            r#type = "type",
        ]
        content: PlainBlock<'a> = "content",
    }

    PlainBlock {
        [
            r#type = "type",
            text = "text",
        ]
    }

    ContentBlock {
        r#type: Str<'a> = "type",
        text: Any<'a> = "text",
        data: Any<'a> = "data",
        mime_type: Str<'a> = "mimeType",
        mime_type_snake: Str<'a> = "mime_type",
        uri: Any<'a> = "uri",
        name: Any<'a> = "name",
    }

    /// What linkspan and the adapters for Claude Code, Codex and Qwen put into `_meta`.
    Meta {
        parent_tool_use_id: Str<'a> = "parentToolUseId",
        status: Str<'a> = "status",
        result: Any<'a> = "result",
        is_error: Flag = "isError",
        code: Str<'a> = "code",
        message: Any<'a> = "message",
        outcome: Str<'a> = "outcome",
        claude_code: ClaudeMeta<'a> = "claudeCode",
        tool_name: Str<'a> = "toolName",
        separator: Flag = "separator",
        terminal_info: Any<'a> = "terminal_info",
        terminal_output: Terminal<'a> = "terminal_output",
        terminal_output_delta: Terminal<'a> = "terminal_output_delta",
        terminal_exit: Terminal<'a> = "terminal_exit",
        quota: Quota<'a> = "quota",
    }

    ClaudeMeta {
        parent_tool_use_id: Str<'a> = "parentToolUseId",
        tool_name: Str<'a> = "toolName",
    }

    /// A terminal of the agent's own: a piece of what it printed, or how it ended. The adapters for
    /// Codex and Claude Code send this for a command.
    Terminal {
        terminal_id: Str<'a> = "terminal_id",
        data: Any<'a> = "data",
        exit_code: Num = "exit_code",
        signal: Any<'a> = "signal",
    }

    /// What a prompt has used, by the Gemini CLI.
    Quota {
        token_count: TokenCount<'a> = "token_count",
        model_usage: List<ModelUsage<'a>> = "model_usage",
    }

    ModelUsage {
        model: Str<'a> = "model",
        token_count: TokenCount<'a> = "token_count",
    }

    TokenCount {
        input: Num = "input_tokens",
        output: Num = "output_tokens",
    }

    Usage {
        input: Num = "inputTokens",
        output: Num = "outputTokens",
        cached_read: Num = "cachedReadTokens",
        cached_write: Num = "cachedWriteTokens",
        thought: Num = "thoughtTokens",
    }
}
