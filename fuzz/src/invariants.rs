//! The laws of the canonical stream, checked on its JSON: one end per run, everything closed,
//! numbers without gaps, and deltas that add up.

use std::collections::HashMap;

use model::{Body, Channel, Event, Item, ItemId, Text};

/// Reads canonical lines and panics at the first that breaks a law.
///
/// # Panics
///
/// That is its purpose.
pub fn check_invariants(lines: &[u8]) {
    let text = std::str::from_utf8(lines).expect("canonical lines are UTF-8");
    let mut laws = Laws::default();
    for line in text.lines() {
        let event = Event::from_json(line).expect("what was written can be read");
        laws.event(&event);
    }
    assert!(laws.run.is_none(), "a run did not end");
    laws.nothing_open();
}

#[derive(Default)]
struct Laws {
    seq: u64,
    run: Option<String>,
    /// What each open item has streamed so far.
    items: HashMap<String, String>,
    asks: Vec<String>,
}

impl Laws {
    fn event(&mut self, event: &Event<'_>) {
        // A canonical recording may be a part of a session, with the numbers it has there.
        assert!(
            self.seq == 0 || event.seq == self.seq + 1,
            "a gap in the numbers"
        );
        self.seq = event.seq;
        let run = event.run.as_ref().map(|it| it.as_str().to_owned());
        match &event.body {
            Body::RunStarted(_) => {
                assert!(self.run.is_none(), "a run started inside another");
                self.nothing_open();
                self.run = run;
                assert!(self.run.is_some(), "a run without a name");
            }
            Body::RunEnded(_) => {
                assert!(
                    self.run.is_some() && run == self.run,
                    "an end without its run"
                );
                self.nothing_open();
                self.run = None;
            }
            Body::ItemOpened(item) => {
                self.inside_run();
                let before = self.items.insert(key(item.id()), String::new());
                assert!(before.is_none(), "an item opened twice");
            }
            Body::ItemUpdated(item) => {
                assert!(
                    self.items.contains_key(&key(item.id())),
                    "an update of no open item"
                );
            }
            Body::ItemDelta(delta) => {
                let streamed = self.items.get_mut(&key(&delta.item));
                let streamed = streamed.expect("a delta of an open item");
                if delta.channel == Channel::Text {
                    streamed.push_str(&delta.text.to_str());
                }
            }
            Body::ItemClosed(closed) => {
                let streamed = self.items.remove(&key(closed.item.id()));
                let streamed = streamed.expect("a closed item was open");
                if let Some(text) = text(&closed.item).filter(|_| !streamed.is_empty()) {
                    assert_eq!(streamed, text.to_str(), "the deltas do not add up");
                }
            }
            Body::AskOpened(ask) => {
                self.inside_run();
                self.asks.push(ask.id.as_str().to_owned());
            }
            Body::AskSettled(settled) => {
                let at = self.asks.iter().position(|it| it == settled.id.as_str());
                self.asks.remove(at.expect("a settled ask was open"));
            }
            Body::SessionBound(_)
            | Body::UsageReported(_)
            | Body::NoticeRaised(_)
            | Body::FrameUnmapped(_) => (),
        }
    }

    fn inside_run(&self) {
        assert!(self.run.is_some(), "something opened outside of a run");
    }

    fn nothing_open(&self) {
        assert!(self.items.is_empty(), "still open: {:?}", self.items.keys());
        assert!(self.asks.is_empty(), "not settled: {:?}", self.asks);
    }
}

fn key(id: &ItemId<'_>) -> String {
    id.as_str().to_owned()
}

fn text<'a>(item: &'a Item<'_>) -> Option<&'a Text<'a>> {
    match item {
        Item::Message(it) => Some(&it.text),
        Item::Reasoning(it) => Some(&it.text),
        Item::Tool(_)
        | Item::Plan(_)
        | Item::Subagent(_)
        | Item::Compaction(_)
        | Item::Other(_) => None,
    }
}
