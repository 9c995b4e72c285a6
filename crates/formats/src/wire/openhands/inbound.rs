//! OpenHands events as they are read: one flat struct for all kinds, because their fields hardly clash.
//!
//! Names are those of `openhands-sdk` 1.58.0. The SDK refuses unknown keys; this keeps them.

use crate::wire::lenient::{Any, Boxed, Flag, List, Map, Num, Str, Words};

object! {
    Event {
        kind: Str<'a> = "kind",
        id: Str<'a> = "id",
        timestamp: Str<'a> = "timestamp",
        source: Str<'a> = "source",
        parent_id: Str<'a> = "parent_id",
        system_prompt: Content<'a> = "system_prompt",
        dynamic_context: Content<'a> = "dynamic_context",
        tools: List<Any<'a>> = "tools",
        llm_message: Boxed<Message<'a>> = "llm_message",
        llm_response_id: Str<'a> = "llm_response_id",
        extended_content: List<Content<'a>> = "extended_content",
        sender: Str<'a> = "sender",
        thought: List<Content<'a>> = "thought",
        reasoning_content: Any<'a> = "reasoning_content",
        thinking_blocks: List<ThinkingBlock<'a>> = "thinking_blocks",
        responses_reasoning_item: Boxed<ReasoningItem<'a>> = "responses_reasoning_item",
        action: Any<'a> = "action",
        tool_name: Str<'a> = "tool_name",
        tool_call_id: Str<'a> = "tool_call_id",
        tool_call: Boxed<ToolCall<'a>> = "tool_call",
        summary: Any<'a> = "summary",
        action_id: Str<'a> = "action_id",
        observation: Any<'a> = "observation",
        rejection_reason: Any<'a> = "rejection_reason",
        rejection_source: Str<'a> = "rejection_source",
        error: Any<'a> = "error",
        title: Any<'a> = "title",
        status: Str<'a> = "status",
        tool_kind: Str<'a> = "tool_kind",
        raw_input: Any<'a> = "raw_input",
        raw_output: Any<'a> = "raw_output",
        /// The blocks of a card, or a piece of streamed text.
        content: Any<'a> = "content",
        is_error: Flag = "is_error",
        key: Str<'a> = "key",
        value: Any<'a> = "value",
        code: Str<'a> = "code",
        detail: Any<'a> = "detail",
        hook_event_type: Str<'a> = "hook_event_type",
        hook_command: Str<'a> = "hook_command",
        blocked: Flag = "blocked",
    }

    /// A line that linkspan sends to the program in which it runs a conversation.
    Sent {
        r#type: Str<'a> = "type",
        call: Str<'a> = "call",
        allow: Flag = "allow",
        always: Flag = "always",
        reason: Any<'a> = "reason",
    }

    Message {
        role: Str<'a> = "role",
        // The SDK takes a plain string as well.
        content: Words<'a, Content<'a>> = "content",
        reasoning_content: Any<'a> = "reasoning_content",
        thinking_blocks: List<ThinkingBlock<'a>> = "thinking_blocks",
        responses_reasoning_item: Boxed<ReasoningItem<'a>> = "responses_reasoning_item",
    }

    Content {
        text: Any<'a> = "text",
        image_urls: List<Any<'a>> = "image_urls",
        cache_prompt: Flag = "cache_prompt",
    }

    ThinkingBlock {
        thinking: Any<'a> = "thinking",
        signature: Any<'a> = "signature",
        data: Any<'a> = "data",
    }

    ReasoningItem {
        summary: List<Any<'a>> = "summary",
        content: List<Any<'a>> = "content",
        encrypted_content: Any<'a> = "encrypted_content",
    }

    ToolCall {
        // Holds what the model adds to an action, such as its `summary`.
        arguments: Any<'a> = "arguments",
    }

    /// Of an action, what has to be known besides its fields as they are.
    Action {
        kind: Str<'a> = "kind",
        data: Any<'a> = "data",
        args: Any<'a> = "args",
        message: Any<'a> = "message",
        thought: Any<'a> = "thought",
    }

    Observation {
        kind: Str<'a> = "kind",
        content: Words<'a, Content<'a>> = "content",
        // A command that exits with another code than 0 does not set it.
        is_error: Flag = "is_error",
        tool_name: Any<'a> = "tool_name",
        tool: Any<'a> = "tool",
        result: Any<'a> = "result",
        exit_code: Num = "exit_code",
        path: Any<'a> = "path",
        file_path: Any<'a> = "file_path",
        prev_exist: Flag = "prev_exist",
        old_content: Any<'a> = "old_content",
        new_content: Any<'a> = "new_content",
        task_list: List<Task<'a>> = "task_list",
        screenshot_data: Any<'a> = "screenshot_data",
    }

    Task {
        title: Any<'a> = "title",
        notes: Any<'a> = "notes",
        status: Str<'a> = "status",
    }

    /// The conversation, as a subscriber gets it first.
    FullState {
        id: Str<'a> = "id",
        execution_status: Str<'a> = "execution_status",
        stats: Any<'a> = "stats",
        workspace: Workspace<'a> = "workspace",
        agent: Agent<'a> = "agent",
    }

    Workspace {
        working_dir: Str<'a> = "working_dir",
    }

    Agent {
        llm: Llm<'a> = "llm",
    }

    Llm {
        model: Str<'a> = "model",
    }

    Stats {
        usage_to_metrics: Map<'a, Metrics<'a>> = "usage_to_metrics",
    }

    Metrics {
        model_name: Str<'a> = "model_name",
        accumulated_cost: Num = "accumulated_cost",
        accumulated_token_usage: TokenUsage<'a> = "accumulated_token_usage",
    }

    TokenUsage {
        model: Str<'a> = "model",
        // Holds cached tokens for OpenHands' own models, but not for agents that it runs over ACP.
        prompt_tokens: Num = "prompt_tokens",
        completion_tokens: Num = "completion_tokens",
        cache_read_tokens: Num = "cache_read_tokens",
        cache_write_tokens: Num = "cache_write_tokens",
        reasoning_tokens: Num = "reasoning_tokens",
        context_window: Num = "context_window",
        per_turn_token: Num = "per_turn_token",
    }
}
