//! Sub-agents: their parents, and the path of a frame's events.

use std::borrow::Cow;

use model::{Item, ItemId, Raw, Status, Subagent, Text};
use serde::Deserialize;

use super::{FrameContext, Lifecycle};
use crate::wire::claude as wire;

/// Sub-agents remembered at once; the oldest is forgotten first.
const MAX_SUBAGENTS: usize = 256;

#[derive(Clone, Debug, Default)]
pub(super) struct ClaudeSubagents {
    known: Vec<ClaudeSubagent>,
}

#[derive(Clone, Debug)]
struct ClaudeSubagent {
    call: String,
    task: Option<String>,
    /// The path of what it does: its parent's, and its own call.
    path: Vec<ItemId<'static>>,
}

impl ClaudeSubagents {
    /// The path of a frame that names `call` as its parent; the sub-agent is opened if it is not.
    pub(super) fn path_of(
        &mut self,
        lifecycle: &mut Lifecycle,
        cx: &mut FrameContext<'_>,
        call: &str,
    ) -> Vec<ItemId<'static>> {
        if let Some(known) = self.known.iter().find(|it| it.call == call)
            && lifecycle.is_open(&item_id(call))
        {
            return known.path.clone();
        }
        self.open(lifecycle, cx, call, None, &wire::System::default())
    }

    pub(super) fn started(
        &mut self,
        lifecycle: &mut Lifecycle,
        cx: &mut FrameContext<'_>,
        call: &str,
        system: &wire::System<'_>,
    ) {
        if !lifecycle.is_open(&item_id(call)) {
            let parent = system.parent_task_id.as_deref();
            let parent = self
                .known
                .iter()
                .find(|it| parent.is_some() && it.task.as_deref() == parent);
            let path = parent.map(|it| it.path.clone());
            self.open(lifecycle, cx, call, path, system);
        }
        if let Some(known) = self.known.iter_mut().find(|it| it.call == call) {
            known.task = system.task_id.as_deref().map(str::to_owned);
        }
    }

    fn open(
        &mut self,
        lifecycle: &mut Lifecycle,
        cx: &mut FrameContext<'_>,
        call: &str,
        parent: Option<Vec<ItemId<'static>>>,
        system: &wire::System<'_>,
    ) -> Vec<ItemId<'static>> {
        let call_id = ItemId::new(call.to_owned());
        let before = self
            .known
            .iter()
            .position(|it| it.call == call)
            .map(|at| self.known.remove(at));
        let around = parent
            .or_else(|| lifecycle.path_of(&call_id).map(<[_]>::to_vec))
            .or_else(|| before.map(|it| it.path[..it.path.len() - 1].to_vec()))
            .unwrap_or_default();
        let asked = lifecycle
            .open_tool(&call_id)
            .and_then(|it| it.input.clone())
            .map(|it| TaskInput::read(&it));
        let asked = asked.unwrap_or_default();
        let said = |value: crate::wire::lenient::Any<'_>| {
            value.raw().map(|it| Text::from(it).into_owned())
        };
        let subagent = Subagent {
            id: item_id(call),
            call: call_id.clone(),
            name: Cow::Owned(
                system
                    .subagent_type
                    .as_deref()
                    .map(str::to_owned)
                    .or(asked.name)
                    .unwrap_or_else(|| "agent".to_owned()),
            ),
            description: said(system.description).or(asked.description.map(Text::new)),
            prompt: said(system.prompt).or(asked.prompt.map(Text::new)),
            background: system.is_backgrounded.is_true(),
            report: None,
            detail: None,
        };
        let inner = std::mem::replace(&mut cx.path, Cow::Owned(around.clone()));
        lifecycle.open(cx, Item::Subagent(subagent));
        cx.path = inner;
        let mut path = around;
        path.push(call_id);
        if self.known.len() >= MAX_SUBAGENTS {
            self.known.remove(0);
        }
        self.known.push(ClaudeSubagent {
            call: call.to_owned(),
            task: None,
            path: path.clone(),
        });
        path
    }

    /// The item of a sub-agent named by its call or its task.
    pub(super) fn find(&self, call: Option<&str>, task: Option<&str>) -> Option<ItemId<'static>> {
        let known = self
            .known
            .iter()
            .find(|it| call == Some(&*it.call) || (task.is_some() && it.task.as_deref() == task))?;
        Some(item_id(&known.call))
    }

    /// A sub-agent has ended and says what it found.
    pub(super) fn ended<'c>(
        &self,
        lifecycle: &mut Lifecycle,
        cx: &mut FrameContext<'c>,
        key: &ItemId<'_>,
        status: Status,
        report: Option<Text<'c>>,
        detail: Raw<'c>,
    ) {
        lifecycle.close(cx, key, status, |item: &mut Item<'c>| {
            if let Item::Subagent(it) = item {
                it.report = report;
                it.detail = Some(detail);
            }
        });
    }

    /// The call that started a sub-agent has its result: a foreground one is over.
    pub(super) fn call_ended(
        &mut self,
        lifecycle: &mut Lifecycle,
        cx: &mut FrameContext<'_>,
        call: &ItemId<'_>,
        status: Status,
    ) {
        lifecycle.close(cx, &item_id(call.as_str()), status, |_| ());
    }
}

/// The tool call and the agent it starts are two items, so they need two ids.
fn item_id(call: &str) -> ItemId<'static> {
    ItemId::new(format!("agent:{call}"))
}

/// What a call asked of its sub-agent.
#[derive(Default, Deserialize)]
struct TaskInput {
    #[serde(default, rename = "subagent_type")]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    prompt: Option<String>,
}

impl TaskInput {
    fn read(input: &Raw<'_>) -> Self {
        serde_json::from_str(input.get()).unwrap_or_default()
    }
}
