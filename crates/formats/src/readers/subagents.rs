//! Sub-agents of formats that name the call which started them: each is an item inside of that
//! call's path, and what it does gets a path of its own.

use std::borrow::Cow;

use model::{Item, ItemId, Status, Subagent, Text};

use super::lifecycle::{FrameContext, Lifecycle};
use super::recent::Recent;
use crate::wire::lenient::{Any, Str};
use crate::wire::scanner;

/// Sub-agents remembered at once; the oldest is forgotten first.
const MAX_SUBAGENTS: usize = 256;

#[derive(Clone, Debug, Default)]
pub(crate) struct Subagents {
    known: Recent<KnownSubagent, MAX_SUBAGENTS>,
}

#[derive(Clone, Debug)]
struct KnownSubagent {
    call: String,
    /// Another name for it, where the format has one.
    task: Option<String>,
    /// The path of what it does: its parent's, and its own call.
    path: Vec<ItemId<'static>>,
}

/// What the agent says about a sub-agent it starts; what is absent is taken from the call.
#[derive(Debug, Default)]
pub(crate) struct SubagentStart<'a> {
    pub(crate) task: Option<&'a str>,
    pub(crate) parent_task: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) description: Any<'a>,
    pub(crate) prompt: Any<'a>,
    pub(crate) is_background: bool,
}

object! {
    /// What a call asked of its sub-agent.
    TaskInput {
        name: Str<'a> = "subagent_type",
        description: Any<'a> = "description",
        prompt: Any<'a> = "prompt",
    }
}

impl Subagents {
    /// A call that may start a sub-agent, which may outlive it.
    pub(crate) fn expect(&mut self, call: &ItemId<'_>, around: &[ItemId<'static>]) {
        let mut path = around.to_vec();
        path.push(call.clone().into_owned());
        self.remember(call.as_str(), path);
    }

    fn remember(&mut self, call: &str, path: Vec<ItemId<'static>>) {
        self.known.push(KnownSubagent {
            call: call.to_owned(),
            task: None,
            path,
        });
    }

    /// True when the call is known to have started a sub-agent.
    pub(crate) fn knows(&self, call: &str) -> bool {
        self.position(call).is_some()
    }

    fn position(&self, call: &str) -> Option<usize> {
        self.known.iter().position(|it| it.call == call)
    }

    fn with_task(&self, task: Option<&str>) -> Option<&KnownSubagent> {
        let task = task?;
        let mut known = self.known.iter();
        known.find(|it| it.task.as_deref() == Some(task))
    }

    /// The path of what happens inside the sub-agent of a call, which is opened if it is not.
    pub(crate) fn path_of(
        &mut self,
        lifecycle: &mut Lifecycle,
        cx: &mut FrameContext<'_>,
        call: &str,
    ) -> Vec<ItemId<'static>> {
        match self.position(call) {
            // Its item may have been closed while it works on in the background: it is opened
            // again.
            Some(at) if lifecycle.is_open(&item_id(call)) => self.known[at].path.clone(),
            _ => self.open(lifecycle, cx, call, &SubagentStart::default()),
        }
    }

    /// The agent says that it has started a sub-agent.
    pub(crate) fn started(
        &mut self,
        lifecycle: &mut Lifecycle,
        cx: &mut FrameContext<'_>,
        call: &str,
        start: &SubagentStart<'_>,
    ) {
        if !lifecycle.is_open(&item_id(call)) {
            self.open(lifecycle, cx, call, start);
        }
        if let Some(at) = self.position(call) {
            self.known[at].task = start.task.map(str::to_owned);
        }
    }

    fn open(
        &mut self,
        lifecycle: &mut Lifecycle,
        cx: &mut FrameContext<'_>,
        call: &str,
        start: &SubagentStart<'_>,
    ) -> Vec<ItemId<'static>> {
        let call_id = ItemId::new(call.to_owned());
        // Taken out: it is remembered anew below, with the path that it has now.
        let before = self.position(call).map(|at| self.known.remove(at));
        // Claude names the parent's task; in other formats the call stands where its parent works.
        let parent = self.with_task(start.parent_task);
        let mut path = parent
            .map(|it| it.path.clone())
            .or_else(|| lifecycle.path_of(&call_id).map(<[_]>::to_vec))
            // The path around the call, remembered when the call was seen; the call itself may be
            // gone.
            .or_else(|| before.map(|it| it.path[..it.path.len() - 1].to_vec()))
            .unwrap_or_default();
        open_item(lifecycle, cx, &call_id, &path, start);
        path.push(call_id);
        self.remember(call, path.clone());
        path
    }

    /// The item of a sub-agent named by its call or its task.
    pub(crate) fn find(&self, call: Option<&str>, task: Option<&str>) -> Option<ItemId<'static>> {
        let by_call = call.and_then(|it| self.position(it));
        let known = by_call.map(|at| &self.known[at]);
        let known = known.or_else(|| self.with_task(task))?;
        Some(item_id(&known.call))
    }

    /// Closes open sub-agents when a run completes: their end is not reported.
    pub(crate) fn run_ended(&mut self, lifecycle: &mut Lifecycle, cx: &mut FrameContext<'_>) {
        for known in self.known.drain(..) {
            call_ended(lifecycle, cx, &known.call, Status::Ok);
        }
    }
}

/// The call that started a sub-agent has its result.
pub(crate) fn call_ended(
    lifecycle: &mut Lifecycle,
    cx: &mut FrameContext<'_>,
    call: &str,
    status: Status,
) {
    lifecycle.close(cx, &item_id(call), status, |_| ());
}

/// Opens the sub-agent of a call, inside of the path around it.
pub(crate) fn open_item(
    lifecycle: &mut Lifecycle,
    cx: &mut FrameContext<'_>,
    call: &ItemId<'static>,
    around: &[ItemId<'static>],
    start: &SubagentStart<'_>,
) {
    // Only Claude Code describes its sub-agents; elsewhere the input of the call has to serve.
    let input = lifecycle.open_tool(call).and_then(|it| it.input.clone());
    let asked: TaskInput<'_> = input
        .as_ref()
        .and_then(|it| scanner::from_str(it.get()).ok())
        .unwrap_or_default();
    let own = |stated: Any<'_>, asked: Any<'_>| {
        let text = stated.text().or(asked.text());
        text.map(Text::into_owned)
    };
    let name = start.name.or(asked.name.as_deref()).unwrap_or("agent");
    let subagent = Subagent {
        id: item_id(call.as_str()),
        call: call.clone(),
        name: Cow::Owned(name.to_owned()),
        description: own(start.description, asked.description),
        prompt: own(start.prompt, asked.prompt),
        background: start.is_background,
        report: None,
        detail: None,
    };
    cx.inside(around, |cx| lifecycle.open(cx, Item::Subagent(subagent)));
}

/// The tool call and the agent it starts are two items, so they need two ids.
pub(crate) fn item_id(call: &str) -> ItemId<'static> {
    ItemId::new(format!("agent:{call}"))
}
