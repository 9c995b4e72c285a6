//! Gemini CLI's stream-json, as observed from 0.61.0; every field name is one it printed, except
//! those of `error` lines, which its source names.

use super::lenient::{Any, Boxed, Flag, Map, Num, Str};

object! {
    /// Any line of the stream.
    Line {
        r#type: Str<'a> = "type",
        timestamp: Str<'a> = "timestamp",
        // `init`
        session_id: Str<'a> = "session_id",
        model: Str<'a> = "model",
        // `message`
        role: Str<'a> = "role",
        content: Any<'a> = "content",
        // Answers come in pieces only: no line has a whole one.
        delta: Flag = "delta",
        // `tool_use`, `tool_result`
        tool_name: Str<'a> = "tool_name",
        tool_id: Str<'a> = "tool_id",
        parameters: Any<'a> = "parameters",
        // Empty or absent for files that were read or written.
        output: Any<'a> = "output",
        // `tool_result`, `result`
        status: Str<'a> = "status",
        error: Any<'a> = "error",
        stats: Any<'a> = "stats",
        // `error`
        severity: Str<'a> = "severity",
        message: Any<'a> = "message",
    }

    Error {
        r#type: Str<'a> = "type",
        message: Any<'a> = "message",
    }

    Stats {
        /// All input, what was read from the cache included.
        input_tokens: Num = "input_tokens",
        output_tokens: Num = "output_tokens",
        cached: Num = "cached",
        /// Input without what was read from the cache.
        input: Num = "input",
        duration_ms: Num = "duration_ms",
        models: Map<'a, Boxed<Stats<'a>>> = "models",
    }
}
