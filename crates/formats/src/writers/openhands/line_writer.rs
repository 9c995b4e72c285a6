//! What every line has: an id, a time and a place in the order the SDK expects.
//!
//! Times are what the agent stated; an event without one has the time of the event before it.

use model::{Event, Timestamp};

use crate::wire::openhands::{Event as Line, Head, Source, Time};
use crate::wire::uuid::Uuid;
use crate::writers::event_ids::EventIds;
use crate::writers::line;

#[derive(Clone, Debug)]
pub(super) struct LineWriter {
    ids: EventIds,
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
            ids: EventIds::default(),
            at,
            time: time(at),
            batch: None,
        }
    }

    /// The lines that follow come from this event.
    pub(super) fn turn_to(&mut self, event: &Event<'_>) {
        self.ids.turn_to(event);
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

    pub(super) fn id(&mut self) -> Uuid {
        self.ids.next_id()
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
