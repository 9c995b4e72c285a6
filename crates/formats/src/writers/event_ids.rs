//! Ids for the lines that an event becomes, where a format wants UUIDs.
//!
//! They are made from the session, the agent's own id of the frame and the number of the event, so
//! the same input always gives the same ids and two conversations do not share any.

use model::Event;

use crate::wire::uuid::Uuid;

#[derive(Clone, Debug, Default)]
pub(super) struct EventIds {
    /// All that makes the ids of this event's lines differ from any other's.
    seed: u128,
    n_lines: u64,
}

impl EventIds {
    /// Ids of a session before its first event.
    pub(super) fn of_session(session: &str) -> Self {
        Self {
            seed: mix_bytes(0, session.as_bytes()),
            n_lines: 0,
        }
    }

    /// The ids that follow are those of this event's lines.
    pub(super) fn turn_to(&mut self, event: &Event<'_>) {
        let seed = mix_bytes(0, event.session.as_str().as_bytes());
        let seed = mix_bytes(seed, event.native.as_deref().unwrap_or_default().as_bytes());
        self.seed = mix(seed, event.seq);
        // Counted for each event, so that its ids do not depend on where a writer began.
        self.n_lines = 0;
    }

    pub(super) fn next_id(&mut self) -> Uuid {
        self.n_lines += 1;
        let hash = mix(mix(self.seed, self.n_lines), 0);
        // Version 8 of RFC 9562: the meaning of the bits is up to their maker.
        Uuid(hash & !(0xF000_u128 << 64) & !(3_u128 << 62) | 0x8000_u128 << 64 | 2_u128 << 62)
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
