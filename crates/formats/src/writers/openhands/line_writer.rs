//! What every line has: an id, a time and a place in the order the SDK expects.
//!
//! Ids are made from the session, the agent's own id of the frame and the number of the event, so
//! the same input always gives the same ids and two conversations do not share any. Times are what
//! the agent stated; an event without one has the time of the event before it.

use model::{Event, Timestamp};

use crate::wire::openhands::{Event as Line, Head, Id, Source, Time};
use crate::writers::line;

#[derive(Clone, Debug)]
pub(super) struct LineWriter {
    /// All that makes the ids of this event's lines differ from any other's.
    seed: u128,
    n_lines: u64,
    pub(super) at: Timestamp,
    time: Time,
    /// The response of the last action, while nothing that a model would read came after it.
    batch: Option<String>,
}

impl Default for LineWriter {
    fn default() -> Self {
        Self::new(None)
    }
}

impl LineWriter {
    pub(super) fn new(began: Option<Timestamp>) -> Self {
        let at = began.unwrap_or(Timestamp::from_millis(0));
        Self {
            seed: 0,
            n_lines: 0,
            at,
            time: time(at),
            batch: None,
        }
    }

    /// The lines that follow come from this event.
    pub(super) fn turn_to(&mut self, event: &Event<'_>) {
        let seed = mix_bytes(0, event.session.as_str().as_bytes());
        let seed = mix_bytes(seed, event.native.as_deref().unwrap_or_default().as_bytes());
        self.seed = mix(seed, event.seq);
        // Counted for each event, so that its ids do not depend on where a writer began.
        self.n_lines = 0;
        if let Some(at) = event.at.filter(|it| *it != self.at) {
            self.at = at;
            self.time = time(at);
        }
    }

    pub(super) fn head(&mut self, source: Source) -> Head {
        self.head_at(source, self.at)
    }

    /// The head of something that was held back and happened earlier.
    pub(super) fn head_at(&mut self, source: Source, at: Timestamp) -> Head {
        let timestamp = if at == self.at { self.time } else { time(at) };
        let id = self.id();
        Head {
            id,
            timestamp,
            source,
        }
    }

    pub(super) fn id(&mut self) -> Id {
        self.n_lines += 1;
        let hash = mix(mix(self.seed, self.n_lines), 0);
        // Version 8 of RFC 9562: the meaning of the bits is up to their maker.
        Id(hash & !(0xF000_u128 << 64) & !(3_u128 << 62) | 0x8000_u128 << 64 | 2_u128 << 62)
    }

    /// True when an action of this response would join the message that the last line belongs to.
    pub(super) fn is_in_batch(&self, response: &str) -> bool {
        self.batch.as_deref() == Some(response)
    }

    pub(super) fn write(&mut self, out: &mut Vec<u8>, event: &Line<'_>) {
        match event {
            Line::ActionEvent {
                llm_response_id, ..
            } => self.batch = Some((*llm_response_id).to_owned()),
            // The SDK makes messages of these: an action behind one begins another message.
            Line::SystemPromptEvent { .. }
            | Line::MessageEvent { .. }
            | Line::ObservationEvent { .. }
            | Line::UserRejectObservation { .. }
            | Line::AgentErrorEvent { .. } => self.batch = None,
            // A model is not shown these, so they part nothing.
            Line::ACPToolCallEvent { .. }
            | Line::Condensation { .. }
            | Line::HookExecutionEvent { .. }
            | Line::InterruptEvent { .. }
            | Line::ConversationErrorEvent { .. }
            | Line::ConversationStateUpdateEvent { .. }
            | Line::StreamingDeltaEvent { .. } => (),
        }
        line(out, event);
    }
}

fn mix_bytes(hash: u128, bytes: &[u8]) -> u128 {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    mix(words.fold(hash, mix), bytes.len() as u64)
}

/// Reversible for a given word, so counting up never meets the same hash twice.
fn mix(hash: u128, word: u64) -> u128 {
    const ODD: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
    let hash = (hash ^ u128::from(word)).wrapping_add(1).wrapping_mul(ODD);
    hash ^ (hash >> 59)
}

fn time(at: Timestamp) -> Time {
    let text = at.to_string();
    let mut digits = *b"1970-01-01T00:00:00.000000";
    // Years of more than four digits do not fit, and no agent means them.
    if let (24, Some(text)) = (text.len(), text.strip_suffix('Z')) {
        digits[..23].copy_from_slice(text.as_bytes());
    }
    Time(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_microseconds_and_no_zone() {
        let at = Timestamp::parse("2026-11-10T09:00:00.120Z").unwrap();
        assert_eq!(&time(at).0, b"2026-11-10T09:00:00.120000");
        let far = Timestamp::from_millis(i64::MIN);
        assert_eq!(&time(far).0, b"1970-01-01T00:00:00.000000");
    }

    #[test]
    fn ids_are_uuids_and_all_different() {
        let mut pen = LineWriter::new(None);
        let ids: Vec<String> = (0..1000)
            .map(|_| String::from_utf8(pen.id().digits().to_vec()).unwrap())
            .collect();
        let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
        assert_eq!(distinct.len(), 1000);
        for id in &ids {
            let parts: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12]);
            assert_eq!(&id[14..15], "8");
            assert!("89ab".contains(&id[19..20]));
        }
    }
}
