//! What was a ThreadItem before, told with the facts it had.
//!
//! The Codex reader keeps an item's own fields: in the input of a call, in the structured part of
//! its result, in the detail of a warning. They say more than the classification, such as what
//! happened to each of several files, so they are preferred wherever they are found.

use model::{Notice, Raw, Text, Tool, Usage};

use super::calls::{Agent, AgentState, FileChange, Search, owned};
use crate::tools::FileChanges;
use crate::wire::codex;
use crate::wire::lenient::{Any, List, Num, Str};
use crate::wire::thread as wire;

/// The name of a tool that is a command of Codex.
const COMMAND: &str = "command_execution";

/// True for a command whose output and exit code are Codex's own: nothing is cut or made up.
pub(super) fn is_command(tool: &Tool<'_>) -> bool {
    tool.name == COMMAND
}

object! {
    Input {
        sender: Str<'a> = "sender_thread_id",
        receivers: Any<'a> = "receiver_thread_ids",
        prompt: Any<'a> = "prompt",
        query: Any<'a> = "query",
        action: Any<'a> = "action",
    }
}

object! {
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
    let input: FileChanges<'_> = serde_json::from_str(input.get()).unwrap_or_default();
    let changes = input.changes.0.iter().filter_map(|it| {
        let path = owned(&Text::from(it.path.raw()?));
        let kind = super::calls::kind(it.change()?);
        Some(FileChange { path, kind })
    });
    changes.collect()
}

/// What was searched for and where, if it is said in words that a strict reader knows.
pub(super) fn search(tool: &Tool<'_>) -> Option<Search> {
    let input: Input<'_> = serde_json::from_str(tool.input.as_ref()?.get()).ok()?;
    let typed: Typed<'_> = input.action.parse()?;
    let known = ["search", "open_page", "find_in_page", "other"];
    let is_known = known.contains(&typed.r#type.as_deref()?);
    let query = owned(&Text::from(input.query.raw()?));
    is_known.then(|| Search {
        query,
        action: input.action.raw().map(Raw::into_owned),
    })
}

/// A call that speaks of other threads.
pub(super) fn agent(tool: &Tool<'_>) -> Option<Agent> {
    let input: Input<'_> = serde_json::from_str(tool.input.as_ref()?.get()).ok()?;
    let receivers: List<Str<'_>> = input.receivers.parse()?;
    let receivers = receivers.0.iter().filter_map(Str::as_deref);
    Some(Agent {
        tool: match &*tool.name {
            "send_input" => wire::CollabTool::SendInput,
            "wait" => wire::CollabTool::Wait,
            "close_agent" => wire::CollabTool::CloseAgent,
            _ => wire::CollabTool::SpawnAgent,
        },
        sender: input.sender.as_deref()?.to_owned(),
        receivers: Some(receivers.map(str::to_owned).collect()),
        prompt: input.prompt.raw().map(|it| owned(&Text::from(it))),
    })
}

/// How the agents of a call are doing.
pub(super) fn states<'a>(structured: &'a Raw<'_>) -> Vec<AgentState<'a>> {
    let states: codex::AgentsStates<'a> =
        serde_json::from_str(structured.get()).unwrap_or_default();
    let states = states.0.into_iter().map(|(thread_id, it)| AgentState {
        thread_id,
        status: match it.status.as_deref().unwrap_or_default() {
            "pending_init" | "pendingInit" => wire::AgentStatus::PendingInit,
            "interrupted" => wire::AgentStatus::Interrupted,
            "completed" => wire::AgentStatus::Completed,
            "errored" => wire::AgentStatus::Errored,
            "shutdown" => wire::AgentStatus::Shutdown,
            "not_found" | "notFound" => wire::AgentStatus::NotFound,
            _ => wire::AgentStatus::Running,
        },
        message: it.message.raw().map(Text::from),
    });
    states.collect()
}

/// The counts as Codex has them: of the whole thread, and the input with what came from a cache.
pub(super) fn usage(usage: &Usage<'_>) -> Option<wire::Usage> {
    let own: codex::Usage<'_> = serde_json::from_str(usage.detail.as_ref()?.get()).ok()?;
    let count = |a: Num, b: Num| {
        let n = a.as_u64().or(b.as_u64())?;
        Some(n.min(i64::MAX.unsigned_abs()))
    };
    Some(wire::Usage {
        input_tokens: count(own.input, own.input_camel)?,
        cached_input_tokens: count(own.cached, own.cached_camel)?,
        cache_write_input_tokens: count(own.cache_write, own.cache_write_camel).unwrap_or(0),
        output_tokens: count(own.output, own.output_camel)?,
        reasoning_output_tokens: count(own.reasoning, own.reasoning_camel).unwrap_or(0),
    })
}

/// A warning that was one of Codex' own.
pub(super) enum Warning {
    /// An `error` item with its id.
    Item(String),
    /// An `error` line.
    Line,
}

pub(super) fn warning(notice: &Notice<'_>) -> Option<Warning> {
    let said: Typed<'_> = serde_json::from_str(notice.detail.as_ref()?.get()).ok()?;
    let is_same =
        said.r#type.as_deref() == Some("error") && Text::from(said.message.raw()?) == notice.text;
    is_same.then(|| match said.id.as_deref() {
        Some(id) => Warning::Item(id.to_owned()),
        None => Warning::Line,
    })
}
