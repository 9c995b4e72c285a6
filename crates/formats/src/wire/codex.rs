//! Codex: the lines of `codex exec --json`, and the messages of `codex app-server`.
//!
//! As observed from codex-cli 0.166.0, and the same ThreadEvents as other programs write them. The
//! app server speaks JSON-RPC without the `jsonrpc` member and spells in camel case what the lines
//! spell with underscores; one struct reads both. Not every name of the app server is in a
//! recording; what turns out to be spelled otherwise is kept as it came.

use model::Raw;
use serde::Serialize;

use super::lenient::{Any, Boxed, Flag, List, Map, Num, Str};

object! {
    /// A line of either kind.
    Line {
        r#type: Str<'a> = "type",
        thread_id: Str<'a> = "thread_id",
        item: Boxed<Item<'a>> = "item",
        usage: Any<'a> = "usage",
        /// Of a failed turn, or of a request that was refused.
        error: Boxed<Error<'a>> = "error",
        message: Any<'a> = "message",
        method: Str<'a> = "method",
        id: Any<'a> = "id",
        params: Boxed<Params<'a>> = "params",
        result: Any<'a> = "result",
        emitted_at: Num = "emittedAtMs",
        jsonrpc: Str<'a> = "jsonrpc",
    }

    /// An item of any type, in either spelling.
    Item {
        id: Str<'a> = "id",
        r#type: Str<'a> = "type",
        status: Str<'a> = "status",
        text: Any<'a> = "text",
        // A `commentary` is never the answer.
        phase: Any<'a> = "phase",
        message: Any<'a> = "message",
        /// The parts of a user's message, or of reasoning.
        content: List<Any<'a>> = "content",
        summary: List<Any<'a>> = "summary",
        command: Any<'a> = "command",
        cwd: Str<'a> = "cwd",
        aggregated_output: Any<'a> = "aggregated_output",
        aggregated_output_camel: Any<'a> = "aggregatedOutput",
        exit_code: Num = "exit_code",
        exit_code_camel: Num = "exitCode",
        // Only the app server has diffs in them.
        changes: Any<'a> = "changes",
        server: Str<'a> = "server",
        tool: Str<'a> = "tool",
        arguments: Any<'a> = "arguments",
        result: Any<'a> = "result",
        error: Boxed<Error<'a>> = "error",
        query: Any<'a> = "query",
        action: Any<'a> = "action",
        items: List<Todo<'a>> = "items",
        sender: Any<'a> = "sender_thread_id",
        sender_camel: Any<'a> = "senderThreadId",
        receivers: Any<'a> = "receiver_thread_ids",
        receivers_camel: Any<'a> = "receiverThreadIds",
        prompt: Any<'a> = "prompt",
        agents_states: Any<'a> = "agents_states",
        agents_states_camel: Any<'a> = "agentsStates",
        path: Any<'a> = "path",
        review: Any<'a> = "review",
    }

    Error {
        message: Any<'a> = "message",
    }

    Todo {
        text: Any<'a> = "text",
        completed: Flag = "completed",
    }

    /// What an MCP server answered.
    McpResult {
        content: Any<'a> = "content",
        structured: Any<'a> = "structured_content",
        structured_camel: Any<'a> = "structuredContent",
        meta: Any<'a> = "_meta",
    }

    /// How one agent of a `collab_tool_call` is doing.
    AgentState {
        status: Str<'a> = "status",
        message: Any<'a> = "message",
    }
}

pub(crate) type AgentsStates<'a> = Map<'a, AgentState<'a>>;

object! {
    /// Where a search went instead of to a search machine.
    Action {
        url: Any<'a> = "url",
    }

    /// Only the first `id` counts: a `web_search` has two, and the second names something else.
    Ids {
        item: FirstId = "item",
    }
}

/// The first `id` of an object.
#[derive(Debug, Default)]
pub(crate) struct FirstId(pub(crate) Option<String>);

impl<'de> serde::Deserialize<'de> for FirstId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = Map::<'de, Any<'de>>::deserialize(deserializer)?;
        // An `object!` would keep the last of two equal keys.
        let first = entries.0.iter().find(|(key, _)| key == "id");
        let id: Option<Str<'_>> = first.and_then(|(_, id)| id.parse());
        Ok(Self(id.and_then(|it| it.0.map(|id| id.into_owned()))))
    }
}

object! {
    /// Token counts in either spelling. The input holds what came from a cache.
    Usage {
        input: Num = "input_tokens",
        input_camel: Num = "inputTokens",
        cached: Num = "cached_input_tokens",
        cached_camel: Num = "cachedInputTokens",
        cache_write: Num = "cache_write_input_tokens",
        cache_write_camel: Num = "cacheWriteInputTokens",
        output: Num = "output_tokens",
        output_camel: Num = "outputTokens",
        reasoning: Num = "reasoning_output_tokens",
        reasoning_camel: Num = "reasoningOutputTokens",
    }

    /// What linkspan adds to the end of a turn, so that each run keeps its own counts.
    Figures {
        usage_scope: Str<'a> = "usage_scope",
        model_usage: List<Any<'a>> = "model_usage",
        cost_usd: Num = "cost_usd",
        session_cost_usd: Num = "session_cost_usd",
        duration_ms: Num = "duration_ms",
    }

    /// The counts of one model, beside those of [`Usage`].
    ModelFigures {
        model: Str<'a> = "model",
        cost_usd: Num = "cost_usd",
        context_window: Num = "context_window",
    }

    /// What a message of the app server is about.
    Params {
        thread_id: Str<'a> = "threadId",
        thread: Boxed<Thread<'a>> = "thread",
        turn: Boxed<Turn<'a>> = "turn",
        item: Boxed<Item<'a>> = "item",
        item_id: Str<'a> = "itemId",
        delta: Any<'a> = "delta",
        summary_index: Num = "summaryIndex",
        token_usage: Boxed<TokenUsage<'a>> = "tokenUsage",
        error: Boxed<Error<'a>> = "error",
        will_retry: Flag = "willRetry",
        message: Any<'a> = "message",
        summary: Any<'a> = "summary",
        plan: List<Step<'a>> = "plan",
        request_id: Any<'a> = "requestId",
        reason: Any<'a> = "reason",
        command: Any<'a> = "command",
        cwd: Str<'a> = "cwd",
        questions: List<Question<'a>> = "questions",
        available_decisions: Any<'a> = "availableDecisions",
    }

    Thread {
        id: Str<'a> = "id",
        cwd: Str<'a> = "cwd",
        model: Str<'a> = "model",
        version: Str<'a> = "cliVersion",
        forked_from: Str<'a> = "forkedFromId",
    }

    Turn {
        id: Str<'a> = "id",
        status: Str<'a> = "status",
        error: Boxed<Error<'a>> = "error",
        duration_ms: Num = "durationMs",
    }

    TokenUsage {
        // Counts the whole thread, also what came before it was resumed.
        total: Any<'a> = "total",
        last: Any<'a> = "last",
    }

    /// An entry of the app server's plan.
    Step {
        step: Any<'a> = "step",
        status: Str<'a> = "status",
    }

    Question {
        question: Any<'a> = "question",
    }

    /// What a request was answered with.
    Answer {
        thread: Boxed<Thread<'a>> = "thread",
        model: Str<'a> = "model",
        approval_policy: Str<'a> = "approvalPolicy",
        decision: Any<'a> = "decision",
        answers: Any<'a> = "answers",
        action: Str<'a> = "action",
        permissions: Any<'a> = "permissions",
        scope: Str<'a> = "scope",
    }

    /// A part of a user's message.
    UserInput {
        r#type: Str<'a> = "type",
        text: Any<'a> = "text",
        url: Any<'a> = "url",
    }
}

/// What a call was given, in the words of its item.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Input<'a> {
    Command {
        command: Raw<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<&'a str>,
    },
    Changes {
        changes: Raw<'a>,
    },
    Search {
        query: Raw<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<Raw<'a>>,
    },
    Agents {
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt: Option<Raw<'a>>,
        sender_thread_id: Raw<'a>,
        receiver_thread_ids: Raw<'a>,
    },
    Path {
        path: Raw<'a>,
    },
}

/// The `error` item, which is no item here.
#[derive(Serialize)]
#[serde(tag = "type", rename = "error")]
pub(crate) struct ErrorItem<'a> {
    pub(crate) id: &'a str,
    pub(crate) message: Raw<'a>,
}
