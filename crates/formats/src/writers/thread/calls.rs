//! Tool calls as ThreadItems: which item a call becomes, and how its end is told.
//!
//! What `item.started` said is kept until the call closes, so that both lines agree in type,
//! command and arguments whatever was learned in between, and so that a call can be closed when
//! nobody says how it ended.

use std::borrow::Cow;

use model::{Change, Losses, Raw, Status, Text, Tool, ToolKind, ToolResult};

use super::Profile;
use super::output;
use crate::wire::lenient::Any;
use crate::wire::thread as wire;

/// A call between its `item.started` and its `item.completed`.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The id it is written under.
    pub(super) id: String,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    /// A command line.
    Shell(Text<'static>),
    /// A tool that only its name stands for; its input has no place.
    Named(Text<'static>),
    Files(Vec<FileChange>),
    Mcp(Mcp),
    Agent(Agent),
    Search(Text<'static>),
    /// A todo list speaks for itself, as a plan.
    Silent,
    /// Any tool in the seed's shape.
    Seed(Text<'static>),
}

#[derive(Clone, Debug)]
struct FileChange {
    path: Text<'static>,
    kind: wire::FileUpdateKind,
}

#[derive(Clone, Debug)]
struct Mcp {
    server: String,
    tool: String,
    arguments: Option<Raw<'static>>,
}

#[derive(Clone, Debug)]
struct Agent {
    sender: String,
    prompt: Option<Text<'static>>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending<'a> {
    pub(super) status: Status,
    pub(super) result: Option<&'a ToolResult<'a>>,
    /// What it printed, for a call that ended without a result.
    pub(super) printed: &'a str,
    pub(super) exit_code: Option<i32>,
    pub(super) change: Option<Change>,
    /// The agent it started goes on.
    pub(super) in_background: bool,
}

impl<'a> Ending<'a> {
    /// Nobody said how.
    pub(super) fn lost(printed: &'a str) -> Self {
        Self {
            status: Status::Lost,
            result: None,
            printed,
            exit_code: None,
            change: None,
            in_background: false,
        }
    }

    fn output(&self, losses: &mut Losses) -> Text<'a> {
        match self.result {
            Some(result) => output::text(result, losses),
            None => output::capped(Text::new(self.printed)),
        }
    }

    /// What to say of a call that did not end well; never empty.
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
        match self.status {
            Status::Ok => wire::Status::Completed,
            Status::Error | Status::Denied | Status::Cancelled | Status::Lost => {
                wire::Status::Failed
            }
        }
    }

    fn command_status(&self) -> wire::Status {
        match self.status {
            Status::Denied => wire::Status::Declined,
            Status::Ok | Status::Error | Status::Cancelled | Status::Lost => self.status(),
        }
    }

    /// A command that was stopped or never ran has no exit code.
    fn exit_code(&self) -> Option<i32> {
        match self.status {
            Status::Ok => Some(self.exit_code.unwrap_or(0)),
            Status::Error => Some(self.exit_code.unwrap_or(1)),
            Status::Denied | Status::Cancelled | Status::Lost => self.exit_code,
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

impl Call {
    pub(super) fn new(id: String, tool: &Tool<'_>, sender: &str, profile: Profile) -> Self {
        let shape = match profile {
            Profile::Typed => Shape::typed(tool, sender),
            Profile::Seed => Shape::Seed(owned(&Text::new(&*tool.name))),
        };
        Self { id, shape }
    }

    /// Absent for a call that is not shown.
    pub(super) fn started(&self) -> Option<wire::ThreadItem<'_>> {
        let status = wire::Status::InProgress;
        let details = match &self.shape {
            Shape::Shell(it) | Shape::Named(it) => command(it, Text::EMPTY, Some(None), status),
            Shape::Seed(name) => command(name, Text::EMPTY, None, status),
            Shape::Files(changes) => files(changes, None, status),
            Shape::Mcp(mcp) => mcp.details(None, None, status),
            Shape::Agent(agent) => {
                agent.details(&self.id, wire::AgentStatus::PendingInit, None, status)
            }
            Shape::Search(query) => search(query),
            Shape::Silent => return None,
        };
        Some(self.item(details))
    }

    /// Absent for a call that is not shown.
    pub(super) fn completed<'a>(
        &'a self,
        ending: &Ending<'a>,
        losses: &mut Losses,
    ) -> Option<wire::ThreadItem<'a>> {
        self.count_losses(ending, losses);
        let status = ending.status();
        let details = match &self.shape {
            Shape::Shell(it) | Shape::Named(it) => {
                let exit_code = ending.exit_code();
                let status = ending.command_status();
                command(it, ending.output(losses), Some(exit_code), status)
            }
            Shape::Seed(name) => {
                let exit_code = i32::from(ending.status != Status::Ok);
                command(name, ending.output(losses), Some(Some(exit_code)), status)
            }
            Shape::Files(changes) => files(changes, ending.change, status),
            Shape::Mcp(mcp) => match (ending.status, ending.result) {
                (Status::Ok, Some(result)) => {
                    mcp.details(Some(output::mcp_result(result)), None, status)
                }
                (Status::Ok, None) => mcp.details(None, None, status),
                (Status::Error | Status::Denied | Status::Cancelled | Status::Lost, _) => {
                    let message = ending.reason(losses);
                    mcp.details(None, Some(wire::Error { message }), status)
                }
            },
            Shape::Agent(agent) => {
                let message = Some(ending.output(losses)).filter(|it| !it.is_empty());
                agent.details(&self.id, ending.agent_status(), message, status)
            }
            Shape::Search(query) => search(query),
            Shape::Silent => return None,
        };
        Some(self.item(details))
    }

    /// What went wrong, where the item itself has no field for it.
    pub(super) fn error<'a>(&self, ending: &Ending<'a>, losses: &mut Losses) -> Option<Text<'a>> {
        let has_field = match self.shape {
            Shape::Files(_) | Shape::Search(_) | Shape::Silent => false,
            Shape::Shell(_) | Shape::Named(_) | Shape::Seed(_) => true,
            Shape::Mcp(_) | Shape::Agent(_) => true,
        };
        (!has_field && ending.status != Status::Ok).then(|| ending.reason(losses))
    }

    fn count_losses(&self, ending: &Ending<'_>, losses: &mut Losses) {
        match &self.shape {
            Shape::Named(_) | Shape::Seed(_) => losses.count("tool input"),
            Shape::Files(_) => losses.count("edit diff"),
            Shape::Search(_) if ending.status == Status::Ok => losses.count("search result"),
            Shape::Silent => losses.count("todo call"),
            Shape::Shell(_) | Shape::Mcp(_) | Shape::Agent(_) | Shape::Search(_) => (),
        }
    }

    fn item<'a>(&'a self, details: wire::Details<'a>) -> wire::ThreadItem<'a> {
        let id = &self.id;
        wire::ThreadItem { id, details }
    }
}

impl Shape {
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
                Self::Mcp(Mcp {
                    server: mcp.server.clone().into_owned(),
                    tool: mcp.tool.clone().into_owned(),
                    arguments: tool.input.clone().map(Raw::into_owned),
                })
            }),
            ToolKind::Task => Self::Agent(Agent {
                sender: sender.to_owned(),
                prompt: tool.input.as_ref().and_then(prompt),
            }),
            ToolKind::WebSearch => class
                .query
                .as_ref()
                .map_or_else(named, |it| Self::Search(owned(it))),
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

impl Mcp {
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

impl Agent {
    fn details<'a>(
        &'a self,
        thread_id: &'a str,
        agent_status: wire::AgentStatus,
        message: Option<Text<'a>>,
        status: wire::Status,
    ) -> wire::Details<'a> {
        wire::Details::CollabToolCall {
            tool: wire::CollabTool::SpawnAgent,
            sender_thread_id: &self.sender,
            receiver_thread_ids: [thread_id],
            prompt: self.prompt.as_ref(),
            agents_states: agents_states(thread_id, agent_status, message),
            status,
        }
    }
}

pub(super) fn agents_states<'a>(
    thread_id: &'a str,
    status: wire::AgentStatus,
    message: Option<Text<'a>>,
) -> wire::AgentsStates<'a> {
    let state = wire::AgentState { status, message };
    wire::AgentsStates { thread_id, state }
}

fn command<'a>(
    command: &'a Text<'a>,
    aggregated_output: Text<'a>,
    exit_code: Option<Option<i32>>,
    status: wire::Status,
) -> wire::Details<'a> {
    wire::Details::CommandExecution {
        command,
        aggregated_output,
        exit_code,
        status,
    }
}

fn files(
    changes: &[FileChange],
    change: Option<Change>,
    status: wire::Status,
) -> wire::Details<'_> {
    // What happened is told of one file; of a move, only the kinds of its two ends make sense.
    let known = change.filter(|_| changes.len() == 1).map(kind);
    let changes = changes
        .iter()
        .map(|it| wire::FileUpdate {
            path: &it.path,
            kind: known.unwrap_or(it.kind),
        })
        .collect();
    wire::Details::FileChange { changes, status }
}

fn search<'a>(query: &'a Text<'a>) -> wire::Details<'a> {
    let action = wire::WebSearchAction::Search { query };
    wire::Details::WebSearch { query, action }
}

fn changes(tool: &Tool<'_>) -> Vec<FileChange> {
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
            0 if is_move => wire::FileUpdateKind::Delete,
            _ if is_move => wire::FileUpdateKind::Add,
            _ => known,
        },
    });
    kinds.collect()
}

fn kind(change: Change) -> wire::FileUpdateKind {
    match change {
        Change::Add => wire::FileUpdateKind::Add,
        Change::Update => wire::FileUpdateKind::Update,
        Change::Delete => wire::FileUpdateKind::Delete,
    }
}

object! {
    TaskInput {
        prompt: Any<'a> = "prompt",
    }
}

/// What a new agent is asked to do; the classification does not tell.
fn prompt(input: &Raw<'_>) -> Option<Text<'static>> {
    let input: TaskInput<'_> = serde_json::from_str(input.get()).ok()?;
    Some(owned(&Text::from(input.prompt.raw()?)))
}

fn owned(text: &Text<'_>) -> Text<'static> {
    match text {
        Text::Plain(it) => Text::Plain(Cow::Owned(it.clone().into_owned())),
        Text::Json(raw) => Text::Json(raw.clone().into_owned()),
    }
}
