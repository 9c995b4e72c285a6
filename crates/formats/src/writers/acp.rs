//! Agent Client Protocol v1: what an agent sends to an editor, one JSON-RPC message per line.
//!
//! Each run becomes `session/update` notifications and one response to the prompt, whose id is the
//! run's number. Permission requests stand beside their answers, so that a file is the whole
//! conversation except the prompts. Facts: the v1 schema and the Claude adapters of Zed; profile
//! `seed` keeps the choices of the OpenHands CLI.

mod agent;
mod asks;
mod texts;
mod tools;
mod turn;

#[cfg(test)]
mod tests;

use model::{
    Binding, Body, Event, Item, ItemClosed, Level, Losses, Notice, Plan, PlanStatus, SessionBound,
    Status, Text, Writer,
};

pub use agent::{AcpAgent, AcpClient, AcpRequest};
pub(super) use tools::tool_kind;

use super::{WriterConfig, hash, line, missing_end};
use crate::wire::{acp as wire, json_rpc};
use agent::Connection;
use asks::{AcpOpenAsk, UsedRequestIds};
use texts::{AcpOpenText, ChunkSource};
use tools::AcpOpenTool;
use turn::ContextWindow;

#[derive(Clone, Debug, Default)]
pub(crate) struct Acp {
    shape: AcpProfile,
    /// A client that sends the prompts itself is watching.
    is_live: bool,
    session: AcpSessionState,
    n_runs: u64,
    run: Option<AcpRun>,
    texts: Vec<AcpOpenText>,
    tools: Vec<AcpOpenTool>,
    asks: Vec<AcpOpenAsk>,
    asked: UsedRequestIds,
    /// The last plan sent to the client.
    plan: Option<u64>,
    context: ContextWindow,
    losses: Losses,
    /// The client answers requests.
    connection: Option<Connection>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AcpProfile {
    #[default]
    Default,
    Seed,
}

/// The state of the session, and what was sent to the client.
#[derive(Clone, Debug, Default)]
struct AcpSessionState {
    /// The agent's own id, or linkspan's until that is known.
    id: String,
    is_native: bool,
    /// The client knows the session by its id: it keeps it, whatever is learned later.
    is_sent: bool,
    cwd: Option<String>,
    mode: Option<String>,
    commands: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct AcpRun {
    /// The main agent has sent text.
    has_text: bool,
    /// The messages that were begun last, one for each source.
    last_message: Option<String>,
    last_thought: Option<String>,
    /// Usage was reported that the client does not know yet.
    has_unsent_usage: bool,
}

impl Acp {
    pub(crate) fn new(config: &WriterConfig) -> Self {
        let shape = match config.profile.as_deref() {
            Some("seed") => AcpProfile::Seed,
            Some(_) | None => AcpProfile::Default,
        };
        Self {
            shape,
            is_live: config.live,
            ..Self::default()
        }
    }

    fn send(&mut self, out: &mut Vec<u8>, update: wire::SessionUpdate<'_>) {
        // Held text is older than this update.
        self.flush(out);
        self.session.is_sent = true;
        let session_id = &self.session.id;
        let notification = json_rpc::Call {
            jsonrpc: json_rpc::VERSION,
            // A notification has no id, and so no answer.
            id: None::<()>,
            method: wire::SESSION_UPDATE,
            params: Some(wire::SessionNotification { session_id, update }),
        };
        line(out, &notification);
    }

    fn bound(&mut self, bound: &SessionBound<'_>, out: &mut Vec<u8>) {
        let is_file = self.connection.is_none();
        let session = &mut self.session;
        // A session that was not asked for does not take the place of the one that was, and on a
        // connection it has the id that it was opened with.
        if is_file && !session.is_sent && (!session.is_native || bound.how != Binding::Mismatch) {
            bound.native.as_str().clone_into(&mut session.id);
            session.is_native = true;
        }
        if let Some(cwd) = &bound.cwd {
            session.cwd = Some(cwd.clone().into_owned());
        }
        if bound.model.is_some() || !bound.tools.is_empty() || !bound.mcp_servers.is_empty() {
            self.losses.count("session detail");
        }
        self.commands(bound, out);
        self.mode(bound, out);
    }

    fn commands(&mut self, bound: &SessionBound<'_>, out: &mut Vec<u8>) {
        let hash = hash(&bound.commands);
        let is_known = self.session.commands == Some(hash)
            || self.connection.as_ref().is_some_and(|it| it.knows_commands);
        if bound.commands.is_empty() || is_known {
            return;
        }
        // Claude Code repeats its commands with every run.
        self.session.commands = Some(hash);
        let command = |name| wire::AvailableCommand {
            name,
            description: format!("/{name}"),
            input: None,
        };
        let available_commands = bound.commands.iter().map(|it| command(&**it)).collect();
        let update = wire::SessionUpdate::AvailableCommandsUpdate { available_commands };
        self.send(out, update);
    }

    fn mode(&mut self, bound: &SessionBound<'_>, out: &mut Vec<u8>) {
        let Some(mode) = &bound.permission_mode else {
            return;
        };
        if self.session.mode.as_deref() == Some(mode) {
            return;
        }
        self.session.mode = Some(mode.clone().into_owned());
        // The modes of a connection are those that its client was offered.
        if self.connection.is_some() {
            return;
        }
        let update = wire::SessionUpdate::CurrentModeUpdate {
            current_mode_id: mode,
        };
        self.send(out, update);
    }

    fn opened(&mut self, event: &Event<'_>, item: &Item<'_>, out: &mut Vec<u8>) {
        match item {
            Item::Message(message) => {
                let source = self.source(event, message);
                self.open_text(message.id.as_str(), source);
            }
            Item::Reasoning(reasoning) => {
                let source = match self.shape {
                    AcpProfile::Default => ChunkSource::Thought,
                    // The mapping that this profile keeps sends thoughts as messages.
                    AcpProfile::Seed => ChunkSource::Agent,
                };
                self.open_text(reasoning.id.as_str(), source);
            }
            Item::Tool(tool) => self.tool_opened(event, tool, out),
            Item::Plan(plan) => self.plan(event, plan, out),
            Item::Subagent(_) => (), // The call that started it shows it.
            Item::Compaction(_) if !self.client().has_compactions => {
                self.losses.count("compaction");
            }
            Item::Compaction(it) => {
                let update = wire::CompactionUpdate {
                    compaction_id: it.id.as_str(),
                    status: "in_progress",
                    summary: Vec::new(),
                };
                self.send(out, wire::SessionUpdate::CompactionUpdate(update));
            }
            Item::Other(_) => self.losses.count("other item"),
        }
    }

    fn updated(&mut self, event: &Event<'_>, item: &Item<'_>, out: &mut Vec<u8>) {
        match item {
            Item::Tool(tool) => self.tool_updated(event, tool, out),
            Item::Plan(plan) => self.plan(event, plan, out),
            Item::Message(_)
            | Item::Reasoning(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => (),
        }
    }

    fn closed(&mut self, event: &Event<'_>, closed: &ItemClosed<'_>, out: &mut Vec<u8>) {
        match &closed.item {
            Item::Message(it) => self.message_closed(event, it, out),
            Item::Reasoning(it) => {
                self.text_closed(event, it.id.as_str(), &it.text, out);
                if it.encrypted.is_some() {
                    self.losses.count("hidden reasoning");
                }
            }
            Item::Tool(it) => self.tool_closed(event, it, closed.status, out),
            Item::Plan(it) => self.plan(event, it, out),
            Item::Subagent(it) => {
                // What a sub-agent in the foreground reports is also the result of its call.
                if it.background && it.report.is_some() {
                    // ACP has no message that belongs to a call which has ended.
                    self.losses.count("background sub-agent report");
                }
            }
            Item::Compaction(_) if !self.client().has_compactions => (),
            Item::Compaction(it) => {
                let text = |text| wire::ContentBlock::Text { text };
                let update = wire::CompactionUpdate {
                    compaction_id: it.id.as_str(),
                    status: compaction_status(closed.status),
                    summary: it.summary.iter().map(Text::by_ref).map(text).collect(),
                };
                self.send(out, wire::SessionUpdate::CompactionUpdate(update));
            }
            Item::Other(_) => (),
        }
    }

    fn plan(&mut self, event: &Event<'_>, plan: &Plan<'_>, out: &mut Vec<u8>) {
        if !event.path.is_empty() {
            // ACP has one plan per session; a sub-agent's would replace the user's.
            return self.losses.count("sub-agent plan");
        }
        let entries = plan.entries.iter().map(|entry| {
            let doing = entry.doing.as_ref().filter(|it| !it.is_empty());
            let doing = doing.filter(|_| entry.status == PlanStatus::InProgress);
            wire::PlanEntry {
                content: doing.unwrap_or(&entry.text).by_ref(),
                // ACP requires one, and no agent has them.
                priority: "medium",
                status: entry.status,
            }
        });
        let entries: Vec<_> = entries.collect();
        let shown = entries
            .iter()
            .map(|it| (it.content.to_str(), it.status as u8));
        let hash = hash(&shown.collect::<Vec<_>>());
        // A plan is closed as it stands, and a client that never saw one needs no empty one.
        if self.plan == Some(hash) || (self.plan.is_none() && entries.is_empty()) {
            return;
        }
        self.plan = Some(hash);
        self.send(out, wire::SessionUpdate::Plan { entries });
    }

    fn notice(&mut self, event: &Event<'_>, notice: &Notice<'_>, out: &mut Vec<u8>) {
        let severity = match notice.level {
            Level::Debug => return self.losses.count("debug notice"),
            Level::Info => return self.losses.count("info notice"),
            Level::Warning => "warning",
            Level::Error => "error",
        };
        if !self.client().has_notices {
            return self.losses.count("notice");
        }
        // A title must not be empty.
        let title = if notice.text.is_empty() {
            Text::new(format!("{severity} {}", notice.code))
        } else {
            notice.text.by_ref()
        };
        let meta = meta(event);
        let notice = wire::Notice {
            severity,
            title,
            meta,
        };
        self.send(out, wire::SessionUpdate::Notice(notice));
    }
}

impl Writer for Acp {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        // Until the agent has named its session, linkspan's own id stands in.
        if !self.session.is_native
            && !self.session.is_sent
            && self.session.id != event.session.as_str()
        {
            event.session.as_str().clone_into(&mut self.session.id);
        }
        match &event.body {
            Body::SessionBound(it) => self.bound(it, out),
            Body::RunStarted(_) => {
                self.n_runs += 1;
                self.run = Some(AcpRun::default());
            }
            Body::RunEnded(it) => self.finish(it, out),
            Body::ItemOpened(it) => self.opened(event, it, out),
            Body::ItemUpdated(it) => self.updated(event, it, out),
            Body::ItemDelta(it) => self.delta(event, it, out),
            Body::ItemClosed(it) => self.closed(event, it, out),
            Body::AskOpened(it) => self.ask(event, it, out),
            Body::AskSettled(it) => self.settle(event, it, out),
            Body::UsageReported(it) => self.usage(event, it, out),
            Body::NoticeRaised(it) => self.notice(event, it, out),
            Body::FrameUnmapped(_) => self.losses.count("unmapped frame"),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.finish(&missing_end(), out);
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }
}

fn compaction_status(status: Status) -> &'static str {
    match status {
        Status::Ok => "completed",
        Status::Error | Status::Lost => "failed",
        Status::Denied | Status::Cancelled => "cancelled",
    }
}

/// What a client needs to put an update inside the sub-agent it came from.
fn meta<'a>(event: &'a Event<'_>) -> Option<wire::Meta<'a>> {
    let parent = event.path.last()?;
    Some(wire::Meta {
        parent_tool_use_id: Some(parent.as_str()),
        ..wire::Meta::default()
    })
}
