//! Questions of the agent, for clients of a server: a row that any reader of ThreadEvents shows.
//! Clients that can answer get the messages of the bridge beside it (`writers::bridge`).
//!
//! The row is a message that is no answer (`phase` is `commentary`), started when the question is put and
//! completed when it is settled. Its id is made of the number of the event, so that a client that comes
//! later, and is shown what waits, gets the same row.

use model::{Ask, AskKind, AskSettled, Decision, Event, Raw, Text};

use super::{Thread, line, take};
use crate::display_safe::display_safe;
use crate::tools;
use crate::wire::thread as wire;
use crate::writers::{ServedThread, bridge};

/// Bytes of a command or an input in the row; the message of the bridge has all of it.
const MAX_SHOWN: usize = 8 * 1024;
/// Questions that are remembered until they are settled; more do not wait at once.
const MAX_OPEN: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct ThreadOpenAsk {
    ask: Ask<'static>,
    row: AskNames,
}

/// Under which names a question is known.
#[derive(Clone, Debug)]
struct AskNames {
    item_id: String,
    ask_id: String,
}

impl AskNames {
    fn new(event: &Event<'_>) -> Self {
        Self {
            item_id: format!("ask_{}", event.seq),
            ask_id: bridge::ask_id(event),
        }
    }

    fn item<'a>(&'a self, text: &'a Text<'a>) -> wire::ThreadItem<'a> {
        let about = Some(wire::AboutAsk {
            phase: "commentary",
            ask_id: &self.ask_id,
        });
        wire::ThreadItem {
            id: &self.item_id,
            details: wire::Details::AgentMessage { text, about },
        }
    }
}

impl Thread {
    pub(super) fn ask_opened(&mut self, event: &Event<'_>, ask: &Ask<'_>, out: &mut Vec<u8>) {
        let Some(served) = &self.served else {
            return self.losses.count("ask");
        };
        self.turns.begin(out);
        write_ask(event, ask, served, out);
        // A question beyond the limit still gets its row; only the end of that row is lost.
        if self.asks.len() < MAX_OPEN {
            self.asks.push(ThreadOpenAsk {
                ask: ask.clone().into_owned(),
                row: AskNames::new(event),
            });
        }
    }

    pub(super) fn ask_settled(&mut self, settled: &AskSettled<'_>, out: &mut Vec<u8>) {
        let Some(open) = take(&mut self.asks, |it| it.ask.id == settled.id) else {
            return;
        };
        self.turns.begin(out);
        let text = decision(settled, &open);
        let text = Text::new(display_safe(&text).into_owned());
        let item = open.row.item(&text);
        line(out, &wire::ThreadEvent::ItemCompleted { item });
    }

    /// Completes the rows of unsettled questions; a valid stream has none.
    pub(super) fn close_asks(&mut self, out: &mut Vec<u8>) {
        for open in std::mem::take(&mut self.asks) {
            let text = Text::new(format!("Not answered: {}", what(&open.ask)));
            let item = open.row.item(&text);
            line(out, &wire::ThreadEvent::ItemCompleted { item });
        }
    }
}

/// Shows an open question to a late client. Other events write nothing.
pub fn waiting_ask(event: &Event<'_>, served: &ServedThread, out: &mut Vec<u8>) {
    if let model::Body::AskOpened(ask) = &event.body {
        write_ask(event, ask, served, out);
    }
}

fn write_ask(event: &Event<'_>, ask: &Ask<'_>, served: &ServedThread, out: &mut Vec<u8>) {
    let row = AskNames::new(event);
    let page = format!("{}/#/s/{}", served.base, event.session.as_str());
    let input = ask.input.as_ref().map(Raw::by_ref);
    let command = tools::classify(&ask.tool, input.as_ref(), None).command;
    let text = question(ask, command.as_ref(), &page, &row.ask_id);
    // The agent's own words, too, may hold what turns or hides the text around them.
    let text = Text::new(display_safe(&text).into_owned());
    let item = row.item(&text);
    line(out, &wire::ThreadEvent::ItemStarted { item });
}

/// What is asked, in a few words.
fn what(ask: &Ask<'_>) -> String {
    let title = ask.title.to_str();
    match ask.kind {
        AskKind::Permission if title.starts_with(&*ask.tool) => title.into_owned(),
        AskKind::Permission => format!("{}: {title}", ask.tool),
        AskKind::Question | AskKind::Plan => title.into_owned(),
    }
}

/// The row in Markdown: what is asked, to the letter, and where to answer.
fn question(ask: &Ask<'_>, command: Option<&Text<'_>>, page: &str, ask_id: &str) -> String {
    let begin = match ask.kind {
        AskKind::Permission => format!("**Permission needed: {}**", ask.tool),
        AskKind::Question => format!("**The agent asks:** {}", ask.title),
        AskKind::Plan => "**The agent wants its plan approved**".to_owned(),
    };
    let mut text = begin;
    if let Some(description) = ask.description.as_ref().filter(|it| !it.is_blank()) {
        text += &format!("\n\n{description}");
    }
    let shown = match (command, &ask.input) {
        (Some(command), _) => Some(command.to_str()),
        (None, Some(input)) => Some(input.get().into()),
        (None, None) => None,
    };
    match shown {
        Some(shown) => text += &format!("\n\n{}", fenced(&shown, ask_id, "bridge.ask")),
        None if ask.kind == AskKind::Permission => text += &format!("\n\n{}", ask.title),
        None => (),
    }
    text + &format!(
        "\n\nAnswer at {page} or with \
         `{{\"control\":\"ask.settle\",\"askId\":\"{ask_id}\",\"decision\":\"allow\"}}` (or `\"deny\"`)."
    )
}

/// A fenced block that its text cannot end, with hidden characters spelled out; a cut one ends in a note.
fn fenced(shown: &str, ask_id: &str, message: &str) -> String {
    // A fence is closed by one that is at least as long.
    let n_ticks = shown.split(|it| it != '`').map(str::len).max();
    let fence = "`".repeat(n_ticks.unwrap_or_default().max(2) + 1);
    let head = &shown[..shown.floor_char_boundary(MAX_SHOWN)];
    let mut block = format!("{fence}\n{}\n{fence}", display_safe(head));
    if head.len() < shown.len() {
        block += &format!(
            "\n\nThis is the beginning of {} bytes; all of it is on the page and in `{message}` of {ask_id}.",
            shown.len()
        );
    }
    block
}

fn decision(settled: &AskSettled<'_>, open: &ThreadOpenAsk) -> String {
    let word = match settled.decision {
        Decision::Allowed => "Allowed",
        Decision::AllowedAlways => "Always allowed",
        Decision::Denied => "Denied",
        Decision::Withdrawn => "Withdrawn by the agent",
        Decision::Lost => "Not answered",
    };
    let what = what(&open.ask);
    let mut text = match settled.message.as_ref().filter(|it| !it.is_blank()) {
        Some(message) => format!("{word}: {what} ({message})"),
        None => format!("{word}: {what}"),
    };
    let is_permission = open.ask.kind == AskKind::Permission;
    let changed = settled.input.as_ref().filter(|_| is_permission);
    if let Some(input) = changed.filter(|it| open.ask.input.as_ref() != Some(it)) {
        let command = tools::classify(&open.ask.tool, Some(&input.by_ref()), None).command;
        let shown = command.as_ref().map_or(input.get().into(), Text::to_str);
        let block = fenced(&shown, &open.row.ask_id, "bridge.ask_settled");
        text += &format!("\n\nChanged on approval; this runs instead:\n\n{block}");
    }
    text
}
