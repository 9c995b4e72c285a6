//! Items that were ThreadItems before, written with their original fields.
//!
//! The Codex reader keeps an item's own fields: in the input of a call, in the structured part of
//! its result, in the detail of a warning. They hold more than the classification, such as what
//! happened to each of several files, so they are preferred wherever they are found.

use model::{Notice, Raw, Text, Tool, Usage};

use super::calls::{AgentCall, FileChange, SearchCall, owned};
use crate::tools::FileChanges;
use crate::wire::codex;
use crate::wire::lenient::{Any, List, Num, Str};
use crate::wire::scanner;
use crate::wire::thread as wire;

/// The name of a tool that is a command of Codex.
const COMMAND: &str = "command_execution";

/// True for a command whose output and exit code are Codex's own: nothing is cut or made up.
pub(super) fn is_command(tool: &Tool<'_>) -> bool {
    tool.name == COMMAND
}

object! {
    CodexSearchInput {
        sender: Str<'a> = "sender_thread_id",
        receivers: Any<'a> = "receiver_thread_ids",
        prompt: Any<'a> = "prompt",
        query: Any<'a> = "query",
        action: Any<'a> = "action",
    }

    CodexSearchAction {
        r#type: Str<'a> = "type",
        query: Any<'a> = "query",
        queries: Any<'a> = "queries",
        url: Any<'a> = "url",
        pattern: Any<'a> = "pattern",
    }

    Typed {
        r#type: Str<'a> = "type",
        id: Str<'a> = "id",
        message: Any<'a> = "message",
    }
}

/// What happens to each file of a patch.
pub(super) fn changes(tool: &Tool<'_>) -> Vec<FileChange> {
    let Some(input) = &tool.input else {
        return Vec::new();
    };
    let input: FileChanges<'_> = scanner::from_str(input.get()).unwrap_or_default();
    let changes = input.changes.0.iter().filter_map(|it| {
        let path = owned(&Text::from(it.path.raw()?));
        let kind = super::calls::kind(it.change()?);
        Some(FileChange { path, kind })
    });
    changes.collect()
}

/// What was searched for and where.
pub(super) fn search(tool: &Tool<'_>) -> Option<SearchCall> {
    let input: CodexSearchInput<'_> = scanner::from_str(tool.input.as_ref()?.get()).ok()?;
    let action: CodexSearchAction<'_> = input.action.parse()?;
    let (url, pattern) = (text_of(action.url), text_of(action.pattern));
    let action = match action.r#type.as_deref()? {
        "search" => {
            let queries: Option<List<Any<'_>>> = action.queries.parse();
            wire::WebSearchAction::Search {
                query: text_of(action.query),
                queries: queries.map(|it| it.0.into_iter().filter_map(text_of).collect()),
            }
        }
        // `codex exec` writes snake case, the app server camel case.
        "open_page" | "openPage" => wire::WebSearchAction::OpenPage { url },
        "find_in_page" | "findInPage" => wire::WebSearchAction::FindInPage { url, pattern },
        _ => wire::WebSearchAction::Other,
    };
    let query = text_of(input.query)?;
    Some(SearchCall { query, action })
}

/// A value that is a string.
fn text_of(any: Any<'_>) -> Option<Text<'static>> {
    let raw = any.raw().filter(Raw::is_string)?;
    Some(owned(&Text::from(raw)))
}

/// A call that addresses other threads.
pub(super) fn agent(tool: &Tool<'_>) -> Option<AgentCall> {
    let input: CodexSearchInput<'_> = scanner::from_str(tool.input.as_ref()?.get()).ok()?;
    let receivers: List<Str<'_>> = input.receivers.parse()?;
    let receivers = receivers.0.iter().filter_map(Str::as_deref);
    Some(AgentCall {
        tool: match &*tool.name {
            "send_input" => wire::CollabTool::SendInput,
            "wait" => wire::CollabTool::Wait,
            "close_agent" => wire::CollabTool::CloseAgent,
            // A strict reader refuses a tool that it does not know.
            _ => wire::CollabTool::SpawnAgent,
        },
        sender: input.sender.as_deref()?.to_owned(),
        receivers: Some(receivers.map(str::to_owned).collect()),
        prompt: input.prompt.raw().map(|it| owned(&Text::from(it))),
    })
}

/// How the agents of a call are doing.
pub(super) fn states<'a>(structured: &'a Raw<'_>) -> wire::AgentsStates<'a> {
    let states: codex::AgentsStates<'a> = scanner::from_str(structured.get()).unwrap_or_default();
    let states = states.0.into_iter().map(|(thread_id, it)| {
        let status = match it.status.as_deref().unwrap_or_default() {
            "pending_init" | "pendingInit" => wire::AgentStatus::PendingInit,
            "interrupted" => wire::AgentStatus::Interrupted,
            "completed" => wire::AgentStatus::Completed,
            "errored" => wire::AgentStatus::Errored,
            "shutdown" => wire::AgentStatus::Shutdown,
            "not_found" | "notFound" => wire::AgentStatus::NotFound,
            // A strict reader refuses a status that it does not know.
            _ => wire::AgentStatus::Running,
        };
        let message = it.message.raw().map(Text::from);
        (thread_id, wire::AgentState { status, message })
    });
    wire::AgentsStates(states.collect())
}

/// The counts as Codex has them: of the whole thread, and the input with what came from a cache.
pub(super) fn usage(usage: &Usage<'_>) -> Option<wire::Usage> {
    let own: codex::Usage<'_> = scanner::from_str(usage.detail.as_ref()?.get()).ok()?;
    let count = |a: Num, b: Num| {
        let n = a.as_u64().or(b.as_u64())?;
        Some(n.min(i64::MAX.unsigned_abs()))
    };
    Some(wire::Usage {
        // `codex exec` writes snake case, the app server camel case.
        input_tokens: count(own.input, own.input_camel)?,
        cached_input_tokens: count(own.cached, own.cached_camel)?,
        cache_write_input_tokens: count(own.cache_write, own.cache_write_camel).unwrap_or(0),
        output_tokens: count(own.output, own.output_camel)?,
        reasoning_output_tokens: count(own.reasoning, own.reasoning_camel).unwrap_or(0),
    })
}

/// A warning that was one of Codex' own.
pub(super) enum CodexWarning {
    /// An `error` item with its id.
    Item(String),
    /// An `error` line.
    Line,
}

pub(super) fn warning(notice: &Notice<'_>) -> Option<CodexWarning> {
    let item: Typed<'_> = scanner::from_str(notice.detail.as_ref()?.get()).ok()?;
    // A notice of another agent may have a detail of this shape by chance.
    let is_same =
        item.r#type.as_deref() == Some("error") && Text::from(item.message.raw()?) == notice.text;
    is_same.then(|| match item.id.as_deref() {
        Some(id) => CodexWarning::Item(id.to_owned()),
        None => CodexWarning::Line,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use model::{End, Event, Frame, Writer as _};

    use super::super::Thread;
    use crate::registry::find_reader;
    use crate::{ReaderConfig, WriterConfig};

    /// Codex in, ThreadEvents out, without those that every stream has.
    fn check(lines: &str, expect: Expect) {
        let mut reader = find_reader("codex").unwrap().1(&ReaderConfig::default());
        let mut writer = Thread::new(&WriterConfig::default());
        let mut out = Vec::new();
        let mut sink = |event: &Event<'_>| writer.event(event, &mut out);
        for line in lines.lines().map(str::trim) {
            reader.frame(Frame::Data(line.as_bytes()), &mut sink);
        }
        reader.end(&End::default(), &mut sink);
        writer.end(&mut out);
        let out = String::from_utf8(out).unwrap();
        let items = out
            .lines()
            .filter(|it| it.contains("\"item") || it.contains("\"error"));
        let items: Vec<&str> = items.collect();
        expect.assert_eq(&(items.join("\n") + "\n"));
    }

    #[test]
    fn app_server_values_become_those_of_a_strict_reader() {
        check(
            r#"{"method":"turn/started","params":{}}
            {"method":"item/completed","params":{"item":{"type":"fileChange","id":"c1","changes":[{"path":"a","kind":{"type":"add"},"diff":"x"},{"path":"b","kind":{"type":"update","movePath":null},"diff":""}],"status":"completed"}}}
            {"method":"item/completed","params":{"item":{"type":"webSearch","id":"c2","query":"q","action":{"type":"openPage","url":"u"}}}}
            {"method":"item/completed","params":{"item":{"type":"collabAgentToolCall","id":"c3","tool":"wait","senderThreadId":"s","receiverThreadIds":["r"],"prompt":null,"agentsStates":{"r":{"status":"notFound","message":null},"p":{"status":"pendingInit"}},"status":"completed"}}}
            {"method":"turn/completed","params":{"turn":{"status":"completed"}}}"#,
            expect![[r#"
                {"type":"item.completed","item":{"id":"c1","type":"file_change","changes":[{"path":"a","kind":"add"},{"path":"b","kind":"update"}],"status":"completed"}}
                {"type":"item.completed","item":{"id":"c2","type":"web_search","query":"q","action":{"type":"open_page","url":"u"}}}
                {"type":"item.completed","item":{"id":"c3","type":"collab_tool_call","tool":"wait","sender_thread_id":"s","receiver_thread_ids":["r"],"prompt":null,"agents_states":{"r":{"status":"not_found","message":null},"p":{"status":"pending_init","message":null}},"status":"completed"}}
            "#]],
        );
    }

    #[test]
    fn missing_codex_fields_are_not_invented() {
        check(
            r#"{"type":"thread.started","thread_id":"t"}
            {"type":"item.completed","item":{"id":"item_3","type":"error","message":"early"}}
            {"type":"turn.started"}
            {"type":"error","message":"Reconnecting... 1/5"}
            {"type":"item.completed","item":{"id":"item_4","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"failed"}}
            {"type":"item.completed","item":{"id":"item_9","type":"web_search","query":"","action":{"type":"open_page","url":"u"}}}
            {"type":"item.completed","item":{"id":"item_10","type":"mcp_tool_call","server":"s","tool":"t","arguments":null,"result":null,"error":{"message":"bad"},"status":"failed"}}
            {"type":"turn.failed","error":{"message":"no"}}
            {"type":"error","message":"late"}"#,
            expect![[r#"
                {"type":"item.completed","item":{"id":"item_3","type":"error","message":"early"}}
                {"type":"error","message":"Reconnecting... 1/5"}
                {"type":"item.completed","item":{"id":"item_4","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"failed"}}
                {"type":"item.completed","item":{"id":"item_9","type":"web_search","query":"","action":{"type":"open_page","url":"u"}}}
                {"type":"item.completed","item":{"id":"item_10","type":"mcp_tool_call","server":"s","tool":"t","arguments":null,"result":null,"error":{"message":"bad"},"status":"failed"}}
                {"type":"turn.failed","error":{"message":"no"}}
            "#]],
        );
    }
}
