//! Sub-agents of formats that only name the call which started them.

use std::borrow::Cow;

use model::{Item, ItemId, Status, Subagent, Text};

use super::lifecycle::{FrameContext, Lifecycle};
use crate::wire::lenient::{Any, Str};

/// Sub-agents remembered at once; the oldest is forgotten first.
const MAX_NESTED: usize = 256;

#[derive(Clone, Debug, Default)]
pub(crate) struct NestedCalls {
    known: Vec<NestedAgent>,
}

#[derive(Clone, Debug)]
struct NestedAgent {
    call: String,
    /// The path of what it does: its parent's, and its own call.
    path: Vec<ItemId<'static>>,
}

object! {
    /// What a call asked of its sub-agent.
    NestedTaskInput {
        name: Str<'a> = "subagent_type",
        description: Any<'a> = "description",
        prompt: Any<'a> = "prompt",
    }
}

impl NestedCalls {
    /// A call that may start a sub-agent, which may outlive it.
    pub(crate) fn expect(&mut self, call: &ItemId<'_>, around: &[ItemId<'static>]) {
        let mut path = around.to_vec();
        path.push(call.clone().into_owned());
        self.remember(call.as_str(), path);
    }

    fn remember(&mut self, call: &str, path: Vec<ItemId<'static>>) {
        if self.known.len() >= MAX_NESTED {
            self.known.remove(0);
        }
        let call = call.to_owned();
        self.known.push(NestedAgent { call, path });
    }

    /// Closes open sub-agents when a run completes: their end is not reported.
    pub(crate) fn run_ended(&mut self, lifecycle: &mut Lifecycle, cx: &mut FrameContext<'_>) {
        for known in self.known.drain(..) {
            lifecycle.close(cx, &item_id(&known.call), Status::Ok, |_| ());
        }
    }

    /// True when the call is known to have started a sub-agent.
    pub(crate) fn knows(&self, call: &str) -> bool {
        self.known.iter().any(|it| it.call == call)
    }

    /// The path of what happens inside the sub-agent of a call, which is opened if it is not.
    pub(crate) fn path_of(
        &mut self,
        lifecycle: &mut Lifecycle,
        cx: &mut FrameContext<'_>,
        call: &str,
    ) -> Vec<ItemId<'static>> {
        let known = self.known.iter().position(|it| it.call == call);
        if let Some(at) = known
            && lifecycle.is_open(&item_id(call))
        {
            return self.known[at].path.clone();
        }
        let known = known.map(|at| self.known.remove(at));
        let call_id = ItemId::new(call.to_owned());
        let around = lifecycle
            .path_of(&call_id)
            .map(<[_]>::to_vec)
            .or_else(|| known.map(|it| it.path[..it.path.len() - 1].to_vec()))
            .unwrap_or_default();
        let input = lifecycle
            .open_tool(&call_id)
            .and_then(|it| it.input.clone());
        let asked: NestedTaskInput<'_> = input
            .as_ref()
            .and_then(|it| serde_json::from_str(it.get()).ok())
            .unwrap_or_default();
        let said = |value: Any<'_>| value.raw().map(|it| Text::from(it).into_owned());
        let subagent = Subagent {
            id: item_id(call),
            call: call_id.clone(),
            name: Cow::Owned(asked.name.as_deref().unwrap_or("agent").to_owned()),
            description: said(asked.description),
            prompt: said(asked.prompt),
            background: false,
            report: None,
            detail: None,
        };
        let inner = std::mem::replace(&mut cx.path, Cow::Owned(around.clone()));
        lifecycle.open(cx, Item::Subagent(subagent));
        cx.path = inner;
        let mut path = around;
        path.push(call_id);
        self.remember(call, path.clone());
        path
    }

    /// The call that started a sub-agent has its result.
    pub(crate) fn call_ended(
        &self,
        lifecycle: &mut Lifecycle,
        cx: &mut FrameContext<'_>,
        call: &str,
        status: Status,
    ) {
        if self.knows(call) {
            lifecycle.close(cx, &item_id(call), status, |_| ());
        }
    }
}

/// The tool call and the agent it starts are two items, so they need two ids.
fn item_id(call: &str) -> ItemId<'static> {
    ItemId::new(format!("agent:{call}"))
}
