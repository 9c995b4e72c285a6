//! Asks while they wait: each is settled exactly once.

use model::{Ask, AskId, AskKind, AskSettled, Body, Decision, ItemId, Raw, Status, Text, ToolKind};

use super::open_items::MAX_OPEN;
use super::{FrameContext, Lifecycle};
use crate::tools;

#[derive(Clone, Debug)]
pub(super) struct AskInProgress {
    /// The id the agent knows it by; the one in the events may differ when that was taken.
    key: AskId<'static>,
    id: AskId<'static>,
    item: Option<ItemId<'static>>,
    path: Vec<ItemId<'static>>,
    /// What the agent wants to run, shared with the consumers of the ask.
    input: Option<Raw<'static>>,
}

impl Lifecycle {
    pub(crate) fn ask(&mut self, cx: &mut FrameContext<'_>, mut ask: Ask<'_>) {
        if !self.join_run(cx) {
            return;
        }
        // A question that is repeated while it waits is still one question.
        if self.asks.iter().any(|it| it.key == ask.id) {
            return;
        }
        // A bound on memory: a stream with so many open asks does not show their settlements.
        if self.asks.len() >= MAX_OPEN {
            self.settle_all(cx, Decision::Lost);
        }
        let key = ask.id.clone().into_owned();
        // Asks and items have ids of their own, so they are kept apart here too.
        let id = self.used.unique(&ItemId::new(format!("ask {key}")));
        let id = AskId::new(id.as_str().trim_start_matches("ask ").to_owned());
        let item = ask.item.clone().map(ItemId::into_owned);
        let path = self.used.renamed_path(&cx.path).into_owned();
        if let Some(renamed) = item.as_ref().and_then(|it| self.used.renamed(it)) {
            ask.item = Some(renamed);
        }
        ask.id = id.clone();
        if ask.kind == AskKind::Permission {
            // Only for permissions: a question's own words are what is to be answered.
            ask.title = self.approval_title(item.as_ref(), &ask);
        }
        let input = self.shared_input(item.as_ref(), ask.input.take());
        ask.input.clone_from(&input);
        self.emit(cx, Body::AskOpened(ask));
        self.asks.push(AskInProgress {
            key,
            id,
            item,
            path,
            input,
        });
    }

    /// The input of an ask in memory that all who keep it share, also with its call, whose input it usually
    /// repeats.
    fn shared_input(
        &self,
        item: Option<&ItemId<'_>>,
        asked: Option<Raw<'_>>,
    ) -> Option<Raw<'static>> {
        let call = item.and_then(|it| self.open_tool(it));
        let input = call.and_then(|it| it.input.clone());
        match input.filter(|it| asked.as_ref() == Some(it)) {
            Some(input) => Some(input),
            None => asked.map(Raw::into_owned),
        }
    }

    /// What is approved is what runs, whatever the agent calls it.
    fn approval_title<'a>(&self, item: Option<&ItemId<'_>>, ask: &Ask<'a>) -> Text<'a> {
        let call = item.and_then(|it| self.open_tool(it));
        let input = ask.input.as_ref();
        // Of an unknown call the class says nothing; the ask may name a tool that is known.
        match call.filter(|it| it.class.kind != ToolKind::Other) {
            Some(call) => tools::approval_title(&ask.title, &call.class, input),
            None => {
                let class = tools::classify(&ask.tool, input, None);
                tools::approval_title(&ask.title, &class, input)
            }
        }
    }

    /// Settles an open ask; a second settlement of the same ask is no event.
    pub(crate) fn settle(&mut self, cx: &mut FrameContext<'_>, mut settled: AskSettled<'_>) {
        let Some(at) = self.asks.iter().position(|it| it.key == settled.id) else {
            return;
        };
        let ask = self.asks.remove(at);
        settled.id = ask.id;
        // Some protocols repeat what was asked in every answer; only another input is news.
        settled.input = settled.input.filter(|it| Some(it) != ask.input.as_ref());
        self.emit_at(cx, &ask.path, Body::AskSettled(settled));
    }

    /// Settles the ask about a call, if one waits.
    pub(crate) fn settle_item(
        &mut self,
        cx: &mut FrameContext<'_>,
        item: &ItemId<'_>,
        decision: Decision,
    ) {
        if let Some(ask) = self.ask_of_item(item) {
            self.settle(cx, AskSettled::new(ask, decision));
        }
    }

    /// Settles an ask whose answer was not seen by what became of its call.
    pub(crate) fn settle_by_status(
        &mut self,
        cx: &mut FrameContext<'_>,
        item: &ItemId<'_>,
        status: Status,
    ) {
        let decision = match status {
            Status::Ok | Status::Error => Decision::Allowed,
            Status::Denied => Decision::Denied,
            Status::Cancelled => Decision::Withdrawn,
            Status::Lost => Decision::Lost,
        };
        self.settle_item(cx, item, decision);
    }

    /// True while an ask waits for its settlement.
    pub(crate) fn is_asked(&self, ask: &str) -> bool {
        self.asks.iter().any(|it| it.key.as_str() == ask)
    }

    /// The tool call that an open ask is about.
    pub(crate) fn item_of_ask(&self, ask: &str) -> Option<ItemId<'static>> {
        let ask = self.asks.iter().find(|it| it.key.as_str() == ask)?;
        ask.item.clone()
    }

    /// The ask that waits about a tool call.
    pub(crate) fn ask_of_item(&self, item: &ItemId<'_>) -> Option<AskId<'static>> {
        let ask = self.asks.iter().find(|it| it.item.as_ref() == Some(item))?;
        Some(ask.key.clone())
    }

    pub(super) fn settle_all(&mut self, cx: &mut FrameContext<'_>, decision: Decision) {
        for ask in std::mem::take(&mut self.asks) {
            let settled = AskSettled::new(ask.id, decision);
            self.emit_left_open(cx, &ask.path, Body::AskSettled(settled));
        }
    }
}
