//! Tool calls as ThreadItems: which item a call becomes, and how it ends.
//!
//! The content of `item.started` is kept until the call closes, so that both lines agree in type,
//! command and arguments, and so that a call without an end can be closed.

use std::borrow::Cow;

use model::{Change, Losses, Raw, Status, Text, Tool, ToolKind, ToolResult};

use super::ThreadProfile;
use super::codex_passthrough;
use super::output::{OutputSource, OutputText, Outputs};
use crate::wire::lenient::Any;
use crate::wire::scanner;
use crate::wire::thread as wire;

/// A call between its `item.started` and its `item.completed`.
#[derive(Clone, Debug)]
pub(super) struct ThreadCall {
    /// The id it is written under.
    pub(super) id: String,
    shape: ThreadItemKind,
}

#[derive(Clone, Debug)]
enum ThreadItemKind {
    /// A command line.
    Shell(Text<'static>),
    /// Any other tool, shown by its name alone; its input has no place.
    Named(Text<'static>),
    Files(Vec<FileChange>),
    Mcp(McpCall),
    Agent(AgentCall),
    Search(SearchCall),
    /// A call that changes the to-do list, which is an item of its own.
    Silent,
    /// Any tool in the seed's shape.
    Seed(Text<'static>),
}

#[derive(Clone, Debug)]
pub(super) struct FileChange {
    pub(super) path: Text<'static>,
    pub(super) kind: wire::FileUpdateKind,
}

#[derive(Clone, Debug)]
pub(super) struct SearchCall {
    pub(super) query: Text<'static>,
    pub(super) action: wire::WebSearchAction,
}

#[derive(Clone, Debug)]
struct McpCall {
    server: String,
    tool: String,
    arguments: Option<Raw<'static>>,
}

#[derive(Clone, Debug)]
pub(super) struct AgentCall {
    pub(super) tool: wire::CollabTool,
    pub(super) sender: String,
    /// The threads it addresses, where they are known; else the call's own id names the new one.
    pub(super) receivers: Option<Vec<String>>,
    pub(super) prompt: Option<Text<'static>>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadCallEnd<'a> {
    pub(super) status: Status,
    /// The call as it was closed; absent when the events stop before that.
    pub(super) tool: Option<&'a Tool<'a>>,
    /// What it printed, for a call that ended without a result.
    pub(super) printed: &'a str,
    /// The agent it started is still running.
    pub(super) in_background: bool,
    pub(super) outputs: &'a Outputs,
    /// The event that holds the result.
    pub(super) source: Option<OutputSource<'a>>,
    pub(super) session: &'a str,
}

impl<'a> ThreadCallEnd<'a> {
    /// The outcome is unknown.
    pub(super) fn lost(printed: &'a str, outputs: &'a Outputs, session: &'a str) -> Self {
        Self {
            status: Status::Lost,
            tool: None,
            printed,
            in_background: false,
            outputs,
            source: None,
            session,
        }
    }

    fn result(&self) -> Option<&'a ToolResult<'a>> {
        self.tool?.result.as_ref()
    }

    /// It was a command of Codex itself: nothing is cut, and no exit code made up.
    fn is_own(&self) -> bool {
        self.tool.is_some_and(codex_passthrough::is_command)
    }

    fn written(&self, losses: &mut Losses) -> OutputText<'a> {
        let is_whole = self.is_own() && !self.outputs.cuts_own();
        match self.result() {
            Some(result) if is_whole && result.content.is_string() => OutputText {
                text: Text::from(result.content.by_ref()),
                ..OutputText::default()
            },
            Some(result) => self.outputs.text(result, self.source, losses),
            None => self.outputs.cut(Text::new(self.printed), None),
        }
    }

    fn output(&self, losses: &mut Losses) -> Text<'a> {
        self.written(losses).text
    }

    /// Why a call did not end well; never empty.
    fn reason(&self, losses: &mut Losses) -> Text<'a> {
        let text = self.output(losses);
        if !text.is_empty() {
            return text;
        }
        Text::new(match self.status {
            Status::Ok | Status::Error => "failed",
            Status::Denied => "denied",
            Status::Cancelled => "cancelled",
            Status::Lost => "lost",
        })
    }

    fn status(&self) -> wire::Status {
        match self.status == Status::Ok {
            true => wire::Status::Completed,
            false => wire::Status::Failed,
        }
    }

    fn command_status(&self) -> wire::Status {
        match self.status {
            // Only `command_execution` has this status.
            Status::Denied => wire::Status::Declined,
            Status::Ok | Status::Error | Status::Cancelled | Status::Lost => self.status(),
        }
    }

    /// A command that was stopped or never ran has no exit code.
    fn exit_code(&self) -> Option<i32> {
        let own = self.tool.and_then(|it| it.class.exit_code);
        match self.status {
            _ if self.is_own() => own,
            Status::Ok => own.or(Some(0)),
            // Strict readers of Codex want a number for every command that ran.
            Status::Error => own.or(Some(1)),
            Status::Denied | Status::Cancelled | Status::Lost => own,
        }
    }

    fn agent_status(&self) -> wire::AgentStatus {
        match self.status {
            Status::Ok if self.in_background => wire::AgentStatus::Running,
            Status::Ok => wire::AgentStatus::Completed,
            Status::Error | Status::Denied => wire::AgentStatus::Errored,
            Status::Cancelled | Status::Lost => wire::AgentStatus::Interrupted,
        }
    }
}

impl ThreadCall {
    pub(super) fn new(id: String, tool: &Tool<'_>, sender: &str, profile: ThreadProfile) -> Self {
        let shape = match profile {
            ThreadProfile::Typed => ThreadItemKind::typed(tool, sender),
            ThreadProfile::Seed => ThreadItemKind::Seed(owned(&Text::new(&*tool.name))),
        };
        Self { id, shape }
    }

    /// Takes over what only the end knows, such as all the files of a patch.
    pub(super) fn learn(&mut self, tool: &Tool<'_>) {
        match &mut self.shape {
            ThreadItemKind::Files(changes) => {
                let own = codex_passthrough::changes(tool);
                if !own.is_empty() {
                    *changes = own;
                }
            }
            ThreadItemKind::Search(search) => {
                if let Some(own) = codex_passthrough::search(tool) {
                    *search = own;
                }
            }
            ThreadItemKind::Agent(agent) => {
                if let Some(own) = codex_passthrough::agent(tool) {
                    *agent = own;
                }
            }
            ThreadItemKind::Shell(_)
            | ThreadItemKind::Named(_)
            | ThreadItemKind::Mcp(_)
            | ThreadItemKind::Silent
            | ThreadItemKind::Seed(_) => {}
        }
    }

    /// Absent for a call that is not shown.
    pub(super) fn started(&self) -> Option<wire::ThreadItem<'_>> {
        let status = wire::Status::InProgress;
        let details = match &self.shape {
            ThreadItemKind::Shell(it) | ThreadItemKind::Named(it) => {
                // Strict readers want the key, even while the command runs.
                command(it, OutputText::default(), Some(None), status)
            }
            ThreadItemKind::Seed(name) => command(name, OutputText::default(), None, status),
            // No link yet: the files are only about to change.
            ThreadItemKind::Files(changes) => files(changes, None, status, |_| None),
            ThreadItemKind::Mcp(mcp) => mcp.details(None, None, status),
            ThreadItemKind::Agent(agent) if agent.receivers.is_some() => {
                agent.details(&self.id, wire::AgentsStates::default(), status)
            }
            ThreadItemKind::Agent(agent) => {
                let states = self.one_agent(wire::AgentStatus::PendingInit, None);
                agent.details(&self.id, states, status)
            }
            ThreadItemKind::Search(search) => search.details(),
            ThreadItemKind::Silent => return None,
        };
        Some(self.item(details))
    }

    /// Absent for a call that is not shown.
    pub(super) fn completed<'a>(
        &'a self,
        ending: &ThreadCallEnd<'a>,
        losses: &mut Losses,
    ) -> Option<wire::ThreadItem<'a>> {
        self.count_losses(ending, losses);
        let status = ending.status();
        let details = match &self.shape {
            ThreadItemKind::Shell(it) | ThreadItemKind::Named(it) => {
                let exit_code = ending.exit_code();
                let status = ending.command_status();
                command(it, ending.written(losses), Some(exit_code), status)
            }
            ThreadItemKind::Seed(name) => {
                // The plan of the OpenAgents bridge has only 0 and 1.
                let exit_code = i32::from(ending.status != Status::Ok);
                command(name, ending.written(losses), Some(Some(exit_code)), status)
            }
            ThreadItemKind::Files(changes) => {
                let change = ending.tool.and_then(|it| it.class.change);
                files(changes, change, status, |path| {
                    ending.outputs.file(ending.session, path)
                })
            }
            ThreadItemKind::Mcp(mcp) => match (ending.status, ending.result()) {
                (Status::Ok, Some(result)) => {
                    let result = ending.outputs.mcp_result(result, ending.source);
                    mcp.details(Some(result), None, status)
                }
                // A tool that failed has answered; only what kept it from answering is an error.
                (Status::Error, Some(result)) if !result.content.is_string() => {
                    let result = ending.outputs.mcp_result(result, ending.source);
                    mcp.details(Some(result), None, status)
                }
                (Status::Ok, None) => mcp.details(None, None, status),
                (Status::Error | Status::Denied | Status::Cancelled | Status::Lost, _) => {
                    let message = ending.reason(losses);
                    mcp.details(None, Some(wire::Error { message }), status)
                }
            },
            ThreadItemKind::Agent(agent) if agent.receivers.is_some() => {
                let structured = ending.result().and_then(|it| it.structured.as_ref());
                let states = structured.map(codex_passthrough::states);
                let states = states.unwrap_or_default();
                agent.details(&self.id, states, status)
            }
            ThreadItemKind::Agent(agent) => {
                let message = Some(ending.output(losses)).filter(|it| !it.is_empty());
                let states = self.one_agent(ending.agent_status(), message);
                agent.details(&self.id, states, status)
            }
            ThreadItemKind::Search(search) => search.details(),
            ThreadItemKind::Silent => return None,
        };
        Some(self.item(details))
    }

    /// What went wrong, where the item itself has no field for it.
    pub(super) fn error<'a>(
        &self,
        ending: &ThreadCallEnd<'a>,
        losses: &mut Losses,
    ) -> Option<Text<'a>> {
        let has_field = match self.shape {
            ThreadItemKind::Files(_) | ThreadItemKind::Search(_) | ThreadItemKind::Silent => false,
            ThreadItemKind::Shell(_) | ThreadItemKind::Named(_) | ThreadItemKind::Seed(_) => true,
            ThreadItemKind::Mcp(_) | ThreadItemKind::Agent(_) => true,
        };
        (!has_field && ending.status != Status::Ok).then(|| ending.reason(losses))
    }

    fn count_losses(&self, ending: &ThreadCallEnd<'_>, losses: &mut Losses) {
        match &self.shape {
            ThreadItemKind::Named(_) | ThreadItemKind::Seed(_) => losses.count("tool input"),
            ThreadItemKind::Files(_) => losses.count("edit diff"),
            ThreadItemKind::Search(_) if ending.status == Status::Ok => {
                losses.count("search result")
            }
            ThreadItemKind::Silent => losses.count("todo call"),
            ThreadItemKind::Shell(_)
            | ThreadItemKind::Mcp(_)
            | ThreadItemKind::Agent(_)
            | ThreadItemKind::Search(_) => (),
        }
    }

    /// The one agent of a call that is named by the call itself.
    fn one_agent<'a>(
        &'a self,
        status: wire::AgentStatus,
        message: Option<Text<'a>>,
    ) -> wire::AgentsStates<'a> {
        let state = wire::AgentState { status, message };
        wire::AgentsStates(vec![(Cow::Borrowed(&*self.id), state)])
    }

    fn item<'a>(&'a self, details: wire::Details<'a>) -> wire::ThreadItem<'a> {
        let id = &self.id;
        wire::ThreadItem { id, details }
    }
}

impl ThreadItemKind {
    fn typed(tool: &Tool<'_>, sender: &str) -> Self {
        let class = &tool.class;
        let named = || Self::Named(owned(&Text::new(&*tool.name)));
        match class.kind {
            ToolKind::Shell => class
                .command
                .as_ref()
                .map_or_else(named, |it| Self::Shell(owned(it))),
            ToolKind::Edit | ToolKind::Write | ToolKind::Delete | ToolKind::Move => {
                let changes = changes(tool);
                if changes.is_empty() {
                    named()
                } else {
                    Self::Files(changes)
                }
            }
            ToolKind::Mcp => class.mcp.as_ref().map_or_else(named, |mcp| {
                Self::Mcp(McpCall {
                    server: mcp.server.clone().into_owned(),
                    tool: mcp.tool.clone().into_owned(),
                    arguments: tool.input.clone().map(Raw::into_owned),
                })
            }),
            ToolKind::Task => {
                Self::Agent(codex_passthrough::agent(tool).unwrap_or_else(|| AgentCall {
                    tool: wire::CollabTool::SpawnAgent,
                    sender: sender.to_owned(),
                    // Other agents give their sub-agents no thread; the id of the call names one.
                    receivers: None,
                    prompt: tool.input.as_ref().and_then(prompt),
                }))
            }
            ToolKind::WebSearch => class.query.as_ref().map_or_else(named, |it| {
                Self::Search(
                    codex_passthrough::search(tool).unwrap_or_else(|| SearchCall {
                        query: owned(it),
                        action: wire::WebSearchAction::Search {
                            query: Some(owned(it)),
                            queries: None,
                        },
                    }),
                )
            }),
            ToolKind::Todo => Self::Silent,
            ToolKind::Read
            | ToolKind::Search
            | ToolKind::Fetch
            | ToolKind::Ask
            | ToolKind::Think
            | ToolKind::Mode
            | ToolKind::Other => named(),
        }
    }
}

impl McpCall {
    fn details<'a>(
        &'a self,
        result: Option<wire::McpResult<'a>>,
        error: Option<wire::Error<'a>>,
        status: wire::Status,
    ) -> wire::Details<'a> {
        wire::Details::McpToolCall {
            server: &self.server,
            tool: &self.tool,
            arguments: self.arguments.as_ref(),
            result,
            error,
            status,
        }
    }
}

impl AgentCall {
    fn details<'a>(
        &'a self,
        thread_id: &'a str,
        agents_states: wire::AgentsStates<'a>,
        status: wire::Status,
    ) -> wire::Details<'a> {
        let receivers = self.receivers.as_ref();
        wire::Details::CollabToolCall {
            tool: self.tool,
            sender_thread_id: &self.sender,
            receiver_thread_ids: receivers.map_or_else(
                || vec![thread_id],
                |it| it.iter().map(String::as_str).collect(),
            ),
            prompt: self.prompt.as_ref(),
            agents_states,
            status,
        }
    }
}

impl SearchCall {
    fn details(&self) -> wire::Details<'_> {
        let Self { query, action } = self;
        wire::Details::WebSearch { query, action }
    }
}

fn command<'a>(
    command: &'a Text<'a>,
    output: OutputText<'a>,
    exit_code: Option<Option<i32>>,
    status: wire::Status,
) -> wire::Details<'a> {
    wire::Details::CommandExecution {
        command,
        aggregated_output: output.text,
        exit_code,
        status,
        more: output.more,
    }
}

fn files<'a>(
    changes: &'a [FileChange],
    change: Option<Change>,
    status: wire::Status,
    url: impl Fn(&Text<'_>) -> Option<String>,
) -> wire::Details<'a> {
    // The class knows what happened to one file; of a move, only the kinds of its two ends make sense.
    let known = change.filter(|_| changes.len() == 1).map(kind);
    let changes = changes
        .iter()
        .map(|it| {
            let kind = known.unwrap_or(it.kind);
            let is_there = match kind {
                wire::FileUpdateKind::Add | wire::FileUpdateKind::Update => true,
                wire::FileUpdateKind::Delete => false,
            };
            wire::FileUpdate {
                path: &it.path,
                kind,
                url: url(&it.path).filter(|_| is_there),
            }
        })
        .collect();
    wire::Details::FileChange { changes, status }
}

fn changes(tool: &Tool<'_>) -> Vec<FileChange> {
    let own = codex_passthrough::changes(tool);
    if !own.is_empty() {
        return own;
    }
    let class = &tool.class;
    let is_move = class.kind == ToolKind::Move && class.paths.len() > 1;
    let known = match class.change {
        Some(change) => kind(change),
        None if class.kind == ToolKind::Delete => wire::FileUpdateKind::Delete,
        None => wire::FileUpdateKind::Update,
    };
    let kinds = class.paths.iter().enumerate().map(|(at, path)| FileChange {
        path: owned(&path.path),
        kind: match at {
            // Codex has no kind for a move: the old path is deleted, the new one added.
            0 if is_move => wire::FileUpdateKind::Delete,
            _ if is_move => wire::FileUpdateKind::Add,
            _ => known,
        },
    });
    kinds.collect()
}

pub(super) fn kind(change: Change) -> wire::FileUpdateKind {
    match change {
        Change::Add => wire::FileUpdateKind::Add,
        Change::Update => wire::FileUpdateKind::Update,
        Change::Delete => wire::FileUpdateKind::Delete,
    }
}

object! {
    AgentCallInput {
        prompt: Any<'a> = "prompt",
    }
}

/// What a new agent is asked to do; the classification has no field for it.
fn prompt(input: &Raw<'_>) -> Option<Text<'static>> {
    let input: AgentCallInput<'_> = scanner::from_str(input.get()).ok()?;
    Some(owned(&Text::from(input.prompt.raw()?)))
}

pub(super) fn owned(text: &Text<'_>) -> Text<'static> {
    text.clone().into_owned()
}
