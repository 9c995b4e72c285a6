//! Exports a stored session in any format, from the start or after a cursor.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use formats::{WriterConfig, registry};
use journal::{Journal, Read, Session, State};

use crate::render::Render;

/// A place in a session's stream in some format. An event may become several frames; a client that
/// has the first k frames of event N is at `N.k`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    pub seq: u64,
    /// How many frames of the event after `seq` are known.
    pub n_known: usize,
}

impl Cursor {
    /// Behind frame `n` of the `of` frames of event `seq`.
    pub fn behind(seq: u64, n: usize, of: usize) -> Self {
        // A client with part of event N has all of event N - 1, and continues from there.
        match n == of {
            true => Self { seq, n_known: 0 },
            false => Self {
                seq: seq - 1,
                n_known: n,
            },
        }
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (seq, known) = match text.split_once('.') {
            Some((seq, known)) => (seq, Some(known)),
            None => (text, None),
        };
        let seq: u64 = seq.parse().map_err(|_| ())?;
        match known {
            None => Ok(Self { seq, n_known: 0 }),
            Some(known) => Ok(Self {
                // There is no event 0, so `0.k` is not a valid cursor.
                seq: seq.checked_sub(1).ok_or(())?,
                n_known: known.parse().map_err(|_| ())?,
            }),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.n_known {
            0 => write!(f, "{}", self.seq),
            n => write!(f, "{}.{n}", self.seq + 1),
        }
    }
}

/// A session on its way out: everything that is stored by now.
pub struct Export {
    journal: Arc<dyn Journal>,
    render: Render,
    /// What the client has.
    after: Cursor,
    /// The last event to export.
    last: u64,
    /// The stream is complete there.
    is_whole: bool,
    is_done: bool,
    /// What a frame ends with.
    frame_end: &'static [u8],
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export").finish_non_exhaustive()
    }
}

impl Export {
    pub fn new(
        journal: Arc<dyn Journal>,
        session: &Session,
        format: &str,
        config: &WriterConfig,
        after: Cursor,
        limit: Option<u64>,
    ) -> Result<Self, registry::Error> {
        let (_, writer) = registry::find_writer(format)?;
        let last = limit.map_or(session.head, |it| after.seq.saturating_add(it));
        let id = Arc::new(session.id.clone());
        Ok(Self {
            journal,
            render: Render::with_config(id, format, config, after.seq)?,
            after,
            last: last.min(session.head),
            // A run is still open: closing the stream would claim an end that has not happened.
            is_whole: last >= session.head && session.state == State::Idle,
            is_done: false,
            frame_end: writer.stream_kind.frame_end(),
        })
    }

    /// The next piece; none at the end.
    pub async fn next(&mut self) -> journal::Result<Option<Bytes>> {
        let mut out = Vec::new();
        while !self.is_done && out.is_empty() {
            if self.render.at < self.last {
                self.page(&mut out).await?;
                continue;
            }
            self.is_done = true;
            if self.is_whole {
                self.render.end(&mut out);
            }
        }
        Ok((!out.is_empty()).then(|| out.into()))
    }

    async fn page(&mut self, out: &mut Vec<u8>) -> journal::Result<()> {
        let at = self.render.at;
        // A session at work grows while it is exported; the end was fixed at the beginning.
        let read = Read::page(at).up_to(self.last);
        let page = self.journal.read(self.render.session(), read).await?;
        for stored in &page.events {
            let Some(bytes) = self.render.render(stored) else {
                continue;
            };
            // Only the event right behind the cursor can be known in part.
            let known = match stored.seq == self.after.seq + 1 {
                true => end_of(bytes, self.after.n_known, self.frame_end),
                false => 0,
            };
            out.extend_from_slice(&bytes[known..]);
        }
        // Retention may remove the log meanwhile: an empty page must not be read again forever.
        self.render.at = page.next.max(at + 1);
        Ok(())
    }
}

/// Where the first `n` frames end.
fn end_of(bytes: &[u8], n: usize, frame_end: &[u8]) -> usize {
    let mut at = 0;
    for _ in 0..n {
        let mut places = bytes[at..].windows(frame_end.len());
        match places.position(|it| it == frame_end) {
            Some(place) => at += place + frame_end.len(),
            None => return bytes.len(),
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        for text in ["0", "7", "7.1", "1.3"] {
            assert_eq!(
                text.parse::<Cursor>().map(|it| it.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["", "x", "-1", "0.1", "1.", "1.x", "1.2.3"] {
            assert_eq!(text.parse::<Cursor>(), Err(()), "{text}");
        }
    }

    #[test]
    fn a_cursor_within_an_event_counts_the_known_frames() {
        let cursors: Vec<String> = (1..=3)
            .map(|n| Cursor::behind(5, n, 3).to_string())
            .collect();
        assert_eq!(cursors, ["5.1", "5.2", "5"]);
    }
}
