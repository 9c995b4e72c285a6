//! The sessions of a server: the one that is read, its sub-agents', and others that do not count.

use std::borrow::Cow;

use model::{Item, ItemId, Status, Text};

use super::{FrameContext, OpenCode};
use crate::readers::recent::Recent;
use crate::readers::subagents::{self, SubagentStart, item_id};
use crate::wire::lenient::Any;

/// Sub-agents' sessions remembered at once; the oldest is forgotten first.
const MAX_CHILDREN: usize = 256;
/// Calls that started a sub-agent whose session is not known yet.
const MAX_TASKS: usize = 256;

#[derive(Clone, Debug, Default)]
pub(super) struct ChildSessions {
    children: Recent<ChildSession, MAX_CHILDREN>,
    /// Open calls of `task`, in the order they came.
    tasks: Vec<ItemId<'static>>,
}

#[derive(Clone, Debug)]
struct ChildSession {
    session: String,
    parent: Option<String>,
    /// The call that started it, once it is known.
    call: Option<ItemId<'static>>,
    /// The path of what it does: its parent's, and its own call.
    path: Vec<ItemId<'static>>,
}

impl ChildSessions {
    /// A session names its parent.
    pub(super) fn learn(&mut self, session: &str, parent: &str) {
        if let Some(child) = self.children.iter_mut().find(|it| it.session == session) {
            child.parent = Some(parent.to_owned());
            return;
        }
        self.children.push(ChildSession {
            session: session.to_owned(),
            parent: Some(parent.to_owned()),
            call: None,
            path: Vec::new(),
        });
    }

    pub(super) fn is_child(&self, session: &str) -> bool {
        self.find(session).is_some()
    }

    /// A call of `task` is open.
    pub(super) fn task(&mut self, call: &ItemId<'_>) {
        if !self.tasks.contains(call) && self.tasks.len() < MAX_TASKS {
            self.tasks.push(call.clone().into_owned());
        }
    }

    pub(super) fn forget_run(&mut self) {
        // Children stay known: late events of theirs must not be taken for another session's.
        self.tasks.clear();
    }

    fn find(&self, session: &str) -> Option<&ChildSession> {
        self.children.iter().find(|it| it.session == session)
    }

    fn is_taken(&self, call: &ItemId<'_>) -> bool {
        self.children
            .iter()
            .any(|it| it.call.as_ref() == Some(call))
    }
}

impl OpenCode {
    /// A frame of a sub-agent: its events happen inside of the call that started it.
    pub(super) fn enter(&mut self, cx: &mut FrameContext<'_>, session: &str) {
        let Some(child) = self.sessions.find(session) else {
            return;
        };
        if let Some(call) = &child.call
            && (self.lifecycle.is_open(&item_id(call.as_str())) || !self.lifecycle.is_open(call))
        {
            // It works, or its call is over and this comes late: an agent is not opened twice.
            cx.path = Cow::Owned(child.path.clone());
            return;
        }
        let call = child.call.clone().unwrap_or_else(|| {
            // A call names its session only after that has begun: the first without one is it.
            let mut tasks = self.sessions.tasks.iter();
            let free = tasks.find(|it| !self.sessions.is_taken(it));
            free.cloned()
                .unwrap_or_else(|| ItemId::new(session.to_owned()))
        });
        self.link(cx, session, &call);
        if let Some(child) = self.sessions.find(session) {
            cx.path = Cow::Owned(child.path.clone());
        }
    }

    /// A call names the session of the sub-agent it started.
    pub(super) fn link(&mut self, cx: &mut FrameContext<'_>, session: &str, call: &ItemId<'_>) {
        let child = self.sessions.find(session);
        let is_linked = child.is_some_and(|it| it.call.as_ref() == Some(call));
        if is_linked && self.lifecycle.is_open(&item_id(call.as_str())) {
            return;
        }
        let parent = child.and_then(|it| it.parent.as_deref());
        let of_parent = parent.and_then(|it| self.sessions.find(it));
        let around = self.lifecycle.path_of(call).map(<[_]>::to_vec);
        let around = around
            .or_else(|| of_parent.map(|it| it.path.clone()))
            .unwrap_or_default();
        if child.is_none() {
            // The call may name the session before the session's own event comes.
            self.sessions.learn(session, "");
        }
        let call = call.clone().into_owned();
        let mut path = around.clone();
        path.push(call.clone());
        let children = self.sessions.children.iter_mut();
        if let Some(child) = children.rev().find(|it| it.session == session) {
            child.call = Some(call.clone());
            child.path = path;
        }
        let start = SubagentStart::default();
        subagents::open_item(&mut self.lifecycle, cx, &call, &around, &start);
    }

    /// The call that started a sub-agent has its result.
    pub(super) fn task_done<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        call: &ItemId<'_>,
        status: Status,
        output: Any<'c>,
    ) {
        self.sessions.tasks.retain(|it| it != call);
        let report = output.text().map(report);
        let agent = item_id(call.as_str());
        self.lifecycle.close(cx, &agent, status, |item| {
            if let Item::Subagent(subagent) = item {
                subagent.report = report;
            }
        });
    }
}

/// What a sub-agent found, out of the frame that is for the model.
fn report(output: Text<'_>) -> Text<'_> {
    let whole = output.to_str();
    let inside = whole
        .split_once("<task_result>")
        .and_then(|(_, rest)| rest.rsplit_once("</task_result>"));
    match inside {
        Some((report, _)) => Text::new(report.trim().to_owned()),
        None => {
            drop(whole);
            output
        }
    }
}
