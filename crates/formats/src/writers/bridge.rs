//! The messages of the bridge beside the events of any format, for clients that answer what agents ask and
//! want to know how a run ended without knowing the format's own way to say it.

use model::{Ask, AskId, AskSettled, Body, Event, Raw, RunEnded};

use super::thread::run_figures;
use super::{line, take};
use crate::tools;
use crate::wire::bridge as wire;

/// Asks that are remembered until they are settled; more do not wait at once.
const MAX_OPEN: usize = 256;
const DECISIONS: &[&str] = &["allow", "allow_always", "deny"];

/// Whom the messages are for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BridgeConfig {
    /// The server's address, such as `http://127.0.0.1:8787`, where there is one.
    pub base: Option<String>,
}

/// Writes what the bridge says about each event; nothing about most of them.
#[derive(Clone, Debug)]
pub struct BridgeWriter {
    config: BridgeConfig,
    /// The agent's ids of open asks, and ours.
    open: Vec<(AskId<'static>, String)>,
}

/// By which an ask is answered: its session and the number of the event that asked.
pub(super) fn ask_id(event: &Event<'_>) -> String {
    format!("{}:{}", event.session.as_str(), event.seq)
}

impl BridgeWriter {
    pub fn new(config: BridgeConfig) -> Self {
        Self {
            config,
            open: Vec::new(),
        }
    }

    pub fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match &event.body {
            Body::AskOpened(ask) => self.ask_opened(event, ask, out),
            Body::AskSettled(settled) => self.ask_settled(event, settled, out),
            Body::RunEnded(ended) => run_ended(event, ended, out),
            Body::SessionBound(_)
            | Body::RunStarted(_)
            | Body::ItemOpened(_)
            | Body::ItemUpdated(_)
            | Body::ItemDelta(_)
            | Body::ItemClosed(_)
            | Body::UsageReported(_)
            | Body::NoticeRaised(_)
            | Body::FrameUnmapped(_) => (),
        }
    }

    fn ask_opened(&mut self, event: &Event<'_>, ask: &Ask<'_>, out: &mut Vec<u8>) {
        let ask_id = ask_id(event);
        let input = ask.input.as_ref().map(Raw::by_ref);
        let base = self.config.base.as_deref();
        let page = base.map(|it| format!("{it}/#/s/{}", event.session.as_str()));
        let url = base.map(|it| format!("{it}/api/asks/{ask_id}"));
        let message = wire::BridgeAsk {
            ask_id: &ask_id,
            seq: event.seq,
            run_id: event.run.as_ref().map(|it| it.as_str()),
            item_id: ask.item.as_ref().map(|it| it.as_str()),
            kind: ask.kind,
            tool: &ask.tool,
            title: &ask.title,
            description: ask.description.as_ref(),
            command: tools::classify(&ask.tool, input.as_ref(), None).command,
            input: ask.input.as_ref(),
            suggestions: ask.suggestions.as_ref(),
            deadline: ask.deadline,
            answer: wire::HowToAnswer {
                page: page.as_deref(),
                url: url.as_deref(),
                decisions: DECISIONS,
                control: wire::AnswerControl {
                    control: "ask.settle",
                    ask_id: &ask_id,
                    decision: "allow",
                },
            },
        };
        line(out, &wire::BridgeMessage::Ask(Box::new(message)));
        // Beyond the limit only the message about the end is lost.
        if self.open.len() < MAX_OPEN {
            self.open.push((ask.id.clone().into_owned(), ask_id));
        }
    }

    fn ask_settled(&mut self, event: &Event<'_>, settled: &AskSettled<'_>, out: &mut Vec<u8>) {
        let Some((_, ask_id)) = take(&mut self.open, |it| it.0 == settled.id) else {
            return;
        };
        let message = wire::BridgeMessage::AskSettled {
            ask_id: &ask_id,
            decision: settled.decision,
            by: event.origin,
            why: event.why,
            message: settled.message.as_ref(),
            input: settled.input.as_ref(),
        };
        line(out, &message);
    }
}

fn run_ended(event: &Event<'_>, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
    let (usage, figures) = run_figures(ended);
    let message = wire::BridgeMessage::RunEnded {
        run_id: event.run.as_ref().map(|it| it.as_str()),
        outcome: ended.outcome,
        answer: ended.answer.as_ref(),
        error: ended.error.as_ref(),
        usage,
        figures,
        stop_reason: ended.stop_reason.as_deref(),
        denials: &ended.denials,
    };
    line(out, &message);
}

#[cfg(test)]
mod tests;
