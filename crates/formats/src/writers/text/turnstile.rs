//! The turnstile of live output: text is shown as it streams, and only one agent prints at a time.
//!
//! A message takes the floor when it opens. Once a word of it is on the page, everything else waits
//! until it closes; before that, anything else may go first, and the message is written whole later.

use model::{Body, Channel, Event, Item, ItemId, Role};

use super::page::TerminalPage;
use super::speech::{Speech, SpeechStyle};

/// What may wait for the speaker; more than this interrupts.
const MAX_WAITING: usize = 64 * 1024;

#[derive(Clone, Debug, Default)]
pub(super) struct Turnstile {
    speaker: Option<Speaker>,
    waiting: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Speaker {
    item: ItemId<'static>,
    path: Vec<ItemId<'static>>,
    voice: SpeechStyle,
    speech: Speech,
    was_interrupted: bool,
}

impl Speaker {
    /// Part of its text is already written, so it can no longer be written as a whole.
    fn has_spoken(&self) -> bool {
        self.was_interrupted || self.speech.has_begun()
    }
}

/// What an event was to the speaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Nothing of his.
    Ignored,
    Streamed,
    /// The text is complete.
    AlreadyStreamed,
}

impl Turnstile {
    /// Gives the floor to a message that opens.
    pub(super) fn offer(&mut self, event: &Event<'_>) {
        let Body::ItemOpened(item) = &event.body else {
            return;
        };
        let voice = match item {
            Item::Message(message) if message.role == Role::Assistant => super::ASSISTANT,
            Item::Reasoning(_) => super::THINKING,
            Item::Message(_)
            | Item::Tool(_)
            | Item::Plan(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => return,
        };
        self.speaker = Some(Speaker {
            item: item.id().clone().into_owned(),
            path: event.path.to_vec(),
            voice,
            speech: Speech::new(voice, &event.path),
            was_interrupted: false,
        });
    }

    /// Writes what the speaker streams.
    pub(super) fn deliver(
        &mut self,
        event: &Event<'_>,
        page: &mut TerminalPage,
        out: &mut Vec<u8>,
    ) -> Delivery {
        let Some(speaker) = &mut self.speaker else {
            return Delivery::Ignored;
        };
        match &event.body {
            Body::ItemDelta(delta)
                if delta.item == speaker.item && delta.channel == Channel::Text =>
            {
                speaker.speech.push(&delta.text.to_str(), page, out);
                Delivery::Streamed
            }
            Body::ItemClosed(closed) if *closed.item.id() == speaker.item => {
                let has_spoken = speaker.has_spoken();
                self.clear(page, out);
                if has_spoken {
                    Delivery::AlreadyStreamed
                } else {
                    Delivery::Ignored
                }
            }
            Body::SessionBound(_)
            | Body::RunStarted(_)
            | Body::RunEnded(_)
            | Body::ItemOpened(_)
            | Body::ItemUpdated(_)
            | Body::ItemDelta(_)
            | Body::ItemClosed(_)
            | Body::AskOpened(_)
            | Body::AskSettled(_)
            | Body::UsageReported(_)
            | Body::NoticeRaised(_)
            | Body::FrameUnmapped(_) => Delivery::Ignored,
        }
    }

    /// The buffer of others while one agent prints.
    pub(super) fn take_waiting(&mut self) -> Option<Vec<u8>> {
        self.speaker
            .is_some()
            .then(|| std::mem::take(&mut self.waiting))
    }

    /// Takes back what others have written: it waits, unless the speaker has written nothing yet.
    pub(super) fn wait(&mut self, waiting: Vec<u8>, page: &mut TerminalPage, out: &mut Vec<u8>) {
        self.waiting = waiting;
        let Some(speaker) = &mut self.speaker else {
            return;
        };
        if self.waiting.is_empty() {
            return;
        }
        if !speaker.has_spoken() {
            // Nothing of it is on the page, so that it can be written whole when it closes.
            self.speaker = None;
            out.append(&mut self.waiting);
        // It was interrupted and has written nothing since, or others have waited long enough.
        } else if !speaker.speech.has_begun() || self.waiting.len() > MAX_WAITING {
            let rest = Speech::new(speaker.voice, &speaker.path);
            std::mem::replace(&mut speaker.speech, rest).finish(page, out);
            speaker.was_interrupted = true;
            out.append(&mut self.waiting);
        }
    }

    /// The speaker is done: writes the buffered text.
    pub(super) fn clear(&mut self, page: &mut TerminalPage, out: &mut Vec<u8>) {
        if let Some(speaker) = self.speaker.take() {
            speaker.speech.finish(page, out);
        }
        out.append(&mut self.waiting);
    }
}
