//! What lives inside a run, and the items that are neither words nor calls.

use std::borrow::Cow;

use model::{
    Channel, Compaction, Delta, Extra, Item, ItemClosed, Losses, Other, Plan, Raw, Status,
};

use super::texts::{AgUiOpenText, ReasoningSpan, TextKind};
use super::tools::{AgUiOpenTool, ParentMessage};
use super::{AgUiProfile, EventLane, Run, wire};
use crate::wire::lenient::Str;
use crate::wire::scanner;
use crate::writers::{find_extra, hash};

#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    pub(super) shape: AgUiProfile,
    pub(super) texts: Vec<AgUiOpenText>,
    pub(super) tools: Vec<AgUiOpenTool>,
    plans: Vec<AgUiOpenPlan>,
    /// The current reasoning: the old events have no ids to tell two apart.
    pub(super) thinking: Option<String>,
    pub(super) parents: Vec<ParentMessage>,
    /// Complete calls that the client has to answer.
    pub(super) pending: Vec<String>,
    /// Calls that are shown as the provider describes them.
    activities: Vec<String>,
    /// Reasoning whose last message has ended, while another may follow.
    pub(super) span: Option<ReasoningSpan>,
    /// The main agent has sent text.
    pub(super) has_text: bool,
}

#[derive(Clone, Debug)]
struct AgUiOpenPlan {
    id: String,
    shown: u64,
}

impl Run {
    pub(super) fn opened(
        &mut self,
        item: &Item<'_>,
        extra: &Extra<'_>,
        lane: &mut EventLane<'_>,
        losses: &mut Losses,
    ) {
        match item {
            Item::Message(it) => {
                let group = it.group.as_deref();
                let kind = TextKind::Message(it.role);
                self.items.open_text(it.id.as_str(), kind, group);
                self.items.mark_manner(extra);
            }
            Item::Reasoning(it) => {
                let group = it.group.as_deref();
                self.items
                    .open_text(it.id.as_str(), TextKind::Reasoning, group);
            }
            Item::Tool(it) => match find_extra(extra, "item").filter(is_object) {
                // The schema wants an object as the content of an activity.
                Some(item) => self.items.activity_opened(it.id.as_str(), item, lane),
                None => self.items.tool_opened(it, lane),
            },
            Item::Plan(it) => self.items.plan(it, lane),
            Item::Subagent(it) => match self.items.shape {
                AgUiProfile::Current => self.subagents.opened(it, lane),
                AgUiProfile::Thinking => losses.count("sub-agent"),
            },
            Item::Compaction(it) => lane.emit(compaction(it, "in_progress")),
            Item::Other(it) if is_object(&&it.data) => lane.emit(activity(it, None)),
            Item::Other(_) => (), // Said whole when it closes.
        }
    }

    pub(super) fn closed(
        &mut self,
        closed: &ItemClosed<'_>,
        extra: &Extra<'_>,
        lane: &mut EventLane<'_>,
        losses: &mut Losses,
    ) {
        let status = closed.status;
        match &closed.item {
            Item::Message(it) => self.items.message_closed(it, lane, losses),
            Item::Reasoning(it) => self.items.reasoning_closed(it, lane, losses),
            Item::Tool(it) if self.items.is_activity(it.id.as_str()) => {
                self.items.activity_updated(it.id.as_str(), extra, lane);
                self.items.activities.retain(|id| id != it.id.as_str());
            }
            Item::Tool(it) => self.items.tool_closed(it, status, lane, losses),
            Item::Plan(it) => {
                self.items.plan(it, lane);
                self.items.plans.retain(|open| open.id != it.id.as_str());
            }
            Item::Subagent(it) => {
                self.subagents.closed(it, status, lane);
                // Its id is not used again, and a run may have thousands of them.
                self.items.forget_parent(it.call.as_str());
            }
            Item::Compaction(it) => lane.emit(compaction(it, status.name())),
            Item::Other(it) if is_object(&&it.data) => lane.emit(activity(it, Some(status))),
            Item::Other(it) => lane.emit(other(it, status)),
        }
    }
}

impl Items {
    pub(super) fn new(shape: AgUiProfile) -> Self {
        Self {
            shape,
            ..Self::default()
        }
    }

    pub(super) fn updated(
        &mut self,
        item: &Item<'_>,
        extra: &Extra<'_>,
        lane: &mut EventLane<'_>,
        losses: &mut Losses,
    ) {
        match item {
            Item::Tool(it) if self.is_activity(it.id.as_str()) => {
                self.activity_updated(it.id.as_str(), extra, lane);
            }
            Item::Other(it) if is_object(&&it.data) => lane.emit(activity(it, None)),
            Item::Tool(it) => self.tool_updated(it, lane, losses),
            Item::Plan(it) => self.plan(it, lane),
            Item::Message(_)
            | Item::Reasoning(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => (),
        }
    }

    pub(super) fn delta(&mut self, delta: &Delta<'_>, lane: &mut EventLane<'_>) {
        let id = delta.item.as_str();
        match delta.channel {
            Channel::Text => self.text_delta(id, &delta.text, lane),
            Channel::Input => self.input_delta(id, &delta.text, lane),
            Channel::Output => self.tool_printed(id),
        }
    }

    fn plan(&mut self, plan: &Plan<'_>, lane: &mut EventLane<'_>) {
        let shown: Vec<_> = (plan.entries.iter())
            .map(|it| (it.text.to_str(), it.status as u8))
            .collect();
        let shown = hash(&shown);
        let id = plan.id.as_str();
        match self.plans.iter_mut().find(|it| it.id == id) {
            Some(open) if open.shown == shown => return,
            Some(open) => open.shown = shown,
            // An activity that shows nothing would be an empty card.
            None if plan.entries.is_empty() => return,
            None => self.plans.push(AgUiOpenPlan {
                id: id.to_owned(),
                shown,
            }),
        }
        let entries = plan.entries.iter().map(|entry| wire::PlanEntry {
            content: &entry.text,
            status: entry.status,
            doing: entry.doing.as_ref(),
        });
        let entries = entries.collect();
        lane.emit(wire::Body::ActivitySnapshot {
            message_id: id,
            activity_type: "PLAN",
            content: wire::Activity::Plan(wire::Plan { entries }),
            metadata: None,
        });
    }

    /// Some calls only their provider can describe: an activity shows them as it does.
    fn activity_opened(&mut self, id: &str, item: &Raw<'_>, lane: &mut EventLane<'_>) {
        self.activities.push(id.to_owned());
        lane.emit(provider_activity(id, item, &type_of(item)));
    }

    fn activity_updated(&mut self, id: &str, extra: &Extra<'_>, lane: &mut EventLane<'_>) {
        if let Some(item) = find_extra(extra, "item").filter(is_object) {
            lane.emit(provider_activity(id, item, &type_of(item)));
        }
    }

    fn is_activity(&self, id: &str) -> bool {
        self.activities.iter().any(|it| it == id)
    }

    /// Closes open items, so that the run can end.
    pub(super) fn close_left_open(&mut self, lane: &mut EventLane<'_>) {
        while let Some(at) = self.texts.len().checked_sub(1) {
            self.end_text(at, lane);
        }
        for mut tool in std::mem::take(&mut self.tools) {
            tool.complete(None, lane);
        }
        // The last message of a span leaves it open for another one.
        self.end_span(lane);
    }

    /// Closes open items while no client is attached; they are reopened on reconnect.
    pub(super) fn suspend(&mut self, lane: &mut EventLane<'_>) {
        self.end_span(lane);
        self.suspend_texts(lane);
        for tool in &mut self.tools {
            tool.complete(None, lane);
        }
        self.end_span(lane);
    }
}

fn is_object(raw: &&Raw<'_>) -> bool {
    raw.get().starts_with('{')
}

pub(super) fn type_of(item: &Raw<'_>) -> String {
    object! {
        Typed {
            r#type: Str<'a> = "type",
        }
    }
    let typed: Option<Typed<'_>> = scanner::from_str(item.get()).ok();
    let name = typed.and_then(|mut it| it.r#type.take());
    name.map_or_else(|| "item".to_owned(), Cow::into_owned)
}

fn provider_activity<'a>(id: &'a str, item: &'a Raw<'_>, name: &'a str) -> wire::Body<'a> {
    wire::Body::ActivitySnapshot {
        message_id: id,
        activity_type: name,
        content: wire::Activity::Item(item),
        metadata: None,
    }
}

fn activity<'a>(item: &'a Other<'_>, status: Option<Status>) -> wire::Body<'a> {
    wire::Body::ActivitySnapshot {
        message_id: item.id.as_str(),
        activity_type: &item.name,
        content: wire::Activity::Item(&item.data),
        metadata: status.map(|status| wire::Metadata {
            linkspan: wire::ActivityStatus {
                status,
                text: item.text.as_ref(),
            },
        }),
    }
}

fn compaction<'a>(item: &'a Compaction<'_>, status: &'static str) -> wire::Body<'a> {
    wire::Body::Custom(wire::Custom::Compaction(wire::Compaction {
        id: item.id.as_str(),
        status,
        trigger: item.trigger.as_deref(),
        summary: item.summary.as_ref(),
        tokens_before: item.tokens_before,
        tokens_after: item.tokens_after,
    }))
}

fn other<'a>(item: &'a Other<'_>, status: Status) -> wire::Body<'a> {
    wire::Body::Custom(wire::Custom::Item(wire::Item {
        id: item.id.as_str(),
        name: &item.name,
        status,
        text: item.text.as_ref(),
        data: &item.data,
    }))
}
