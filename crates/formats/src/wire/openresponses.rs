//! Open Responses, and what OpenAI, xAI, LM Studio, vLLM and GitHub Copilot send under that name.
//!
//! Names are those of the 2026-04-24 schema and of the `openai` SDK 3.49.0. Nothing but `type` can be
//! relied on: servers leave out, rename and null every other field.

use std::borrow::Cow;

use model::Raw;
use serde::{Deserialize, Serialize, Serializer};

use super::lenient::{Any, Boxed, Extra, List, Num, Object as _, Str};
use crate::wire::scanner;

object! {
    /// One event. Deltas are by far the most frequent, so everything else is left as it came.
    Line {
        [
            sequence_number = "sequence_number",
            output_index = "output_index",
            // vLLM counts it up with every delta, so nothing may depend on it.
            content_index = "content_index",
            delta = "delta",
            // Random padding.
            obfuscation = "obfuscation",
            logprobs = "logprobs",
            part = "part",
            text = "text",
            refusal = "refusal",
            // LM Studio sends no pieces of them, only the whole.
            arguments = "arguments",
            input = "input",
            summary_index = "summary_index",
            annotation = "annotation",
            annotation_index = "annotation_index",
            error = "error",
            // OpenAI's SDK also knows errors whose fields stand at the top.
            code = "code",
            message = "message",
        ]
        r#type: Str<'a> = "type",
        // GitHub Copilot gives one item another id with every event.
        item_id: Str<'a> = "item_id",
        item: Boxed<Item<'a>> = "item",
        response: Boxed<Response<'a>> = "response",
        object: Str<'a> = "object",
    }

    /// The same event once more, for its item as it came.
    ItemLine {
        item: Any<'a> = "item",
    }

    /// A response. Its output is most of it, and is streamed item by item; the facts about it are kept as they
    /// came.
    Response {
        output: List<Any<'a>> = "output",
    }
}

/// Facts that a rule reads.
const READ: [&str; 12] = [
    "id",
    "object",
    "status",
    "model",
    "created_at",
    "completed_at",
    "previous_response_id",
    "conversation",
    "error",
    "incomplete_details",
    "usage",
    "tools",
];

impl<'a> Response<'a> {
    /// A fact, as far as it is what `T` wants; of a repeated one the last.
    pub(crate) fn fact<T: Default + Deserialize<'a>>(&self, key: &str) -> T {
        let mut facts = self.extra.iter();
        let found = facts.rfind(|it| it.0 == key);
        let json = found.and_then(|it| it.1.borrowed_str());
        json.and_then(|it| scanner::from_str(it).ok())
            .unwrap_or_default()
    }

    pub(crate) fn id(&self) -> Option<Cow<'a, str>> {
        self.fact::<Str<'a>>("id").0
    }

    /// The facts that no rule reads.
    pub(crate) fn unread(&mut self) -> Extra<'a> {
        let facts = std::mem::take(self.extra());
        let unread = facts.into_iter().filter(|it| !READ.contains(&&*it.0));
        unread.collect()
    }

    /// All facts.
    pub(crate) fn facts(&self) -> Option<Raw<'static>> {
        self.is_object.then(|| Raw::of(&Facts(&self.extra)))
    }
}

struct Facts<'a>(&'a [(Cow<'a, str>, Raw<'a>)]);

impl Serialize for Facts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

object! {
    Conversation {
        id: Str<'a> = "id",
    }

    Details {
        reason: Str<'a> = "reason",
    }

    Tool {
        r#type: Str<'a> = "type",
        name: Str<'a> = "name",
    }

    /// An output item of any type.
    Item {
        r#type: Str<'a> = "type",
        id: Str<'a> = "id",
        status: Str<'a> = "status",
        role: Str<'a> = "role",
        content: List<Any<'a>> = "content",
        phase: Any<'a> = "phase",
        summary: List<Any<'a>> = "summary",
        encrypted_content: Any<'a> = "encrypted_content",
        call_id: Str<'a> = "call_id",
        name: Str<'a> = "name",
        arguments: Any<'a> = "arguments",
        input: Any<'a> = "input",
        output: Any<'a> = "output",
        outputs: Any<'a> = "outputs",
        results: Any<'a> = "results",
        result: Any<'a> = "result",
        error: Any<'a> = "error",
        action: Any<'a> = "action",
        operation: Any<'a> = "operation",
        queries: Any<'a> = "queries",
        code: Any<'a> = "code",
        server_label: Str<'a> = "server_label",
    }

    Part {
        r#type: Str<'a> = "type",
        text: Any<'a> = "text",
        refusal: Any<'a> = "refusal",
        annotations: List<Any<'a>> = "annotations",
        logprobs: Any<'a> = "logprobs",
        image_url: Any<'a> = "image_url",
    }

    /// What one command of a shell printed.
    Printed {
        stdout: Any<'a> = "stdout",
        stderr: Any<'a> = "stderr",
        outcome: Exit<'a> = "outcome",
    }

    Exit {
        exit_code: Num = "exit_code",
    }

    /// What a hosted search does.
    Action {
        url: Any<'a> = "url",
        command: List<Str<'a>> = "command",
        commands: List<Str<'a>> = "commands",
    }

    /// One file of a patch.
    Operation {
        r#type: Str<'a> = "type",
        path: Any<'a> = "path",
        diff: Any<'a> = "diff",
    }

    Error {
        r#type: Str<'a> = "type",
        code: Str<'a> = "code",
        message: Any<'a> = "message",
    }

    Usage {
        input_tokens: Num = "input_tokens",
        output_tokens: Num = "output_tokens",
        input_tokens_details: InputDetails<'a> = "input_tokens_details",
        output_tokens_details: OutputDetails<'a> = "output_tokens_details",
    }

    InputDetails {
        cached_tokens: Num = "cached_tokens",
        cache_write_tokens: Num = "cache_write_tokens",
    }

    OutputDetails {
        reasoning_tokens: Num = "reasoning_tokens",
    }
}
