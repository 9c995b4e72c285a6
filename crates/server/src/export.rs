//! Exports a stored session in any format, from the start or after a cursor.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use formats::{WriterConfig, registry};
use journal::{Deltas, Journal, Read, Session, State, Stored};
use model::{SessionId, Writer};

use crate::error::ApiError;

/// Events and bytes read at once.
const PAGE: (u32, usize) = (1024, 1 << 20);

/// A place in a session's stream in some format. An event may become several frames; a client that
/// has the first k frames of event N is at `N.k`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) seq: u64,
    /// How many frames of the event after `seq` are known.
    pub(crate) n_known: usize,
}

impl Cursor {
    /// Behind frame `n` of the `of` frames of event `seq`.
    pub(crate) fn behind(seq: u64, n: usize, of: usize) -> Self {
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

/// How much of a tool's output a client of `thread` wants, in bytes; none is all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MaxOutput(pub(crate) Option<usize>);

impl MaxOutput {
    const LEAST: usize = 1 << 10;
    const MOST: usize = 16 << 20;
}

impl FromStr for MaxOutput {
    type Err = ApiError;

    fn from_str(text: &str) -> Result<Self, ApiError> {
        if text == "full" {
            return Ok(Self(None));
        }
        let bytes: usize = text
            .parse()
            .map_err(|_| ApiError::bad("`output` is a number of bytes, or `full`"))?;
        // Rounded, so that clients with similar limits share a rendering.
        let bytes = bytes.clamp(Self::LEAST, Self::MOST).next_power_of_two();
        Ok(Self(Some(bytes)))
    }
}

/// A session on its way out.
pub struct Export {
    journal: Arc<dyn Journal>,
    session: SessionId<'static>,
    /// Absent for the canonical format, which is sent as stored.
    writer: Option<Box<dyn Writer>>,
    at: u64,
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

/// Everything that is stored of a session by now.
pub fn export(
    journal: Arc<dyn Journal>,
    session: &Session,
    format: &str,
    config: &WriterConfig,
) -> Result<Export, registry::Error> {
    Export::new(journal, session, format, config, Cursor::default(), None)
}

impl Export {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        session: &Session,
        format: &str,
        config: &WriterConfig,
        after: Cursor,
        limit: Option<u64>,
    ) -> Result<Self, registry::Error> {
        let writer = registry::writer(format, config)?;
        let is_stored = format == "linkspan" && config.profile.is_none();
        let last = limit.map_or(session.head, |it| after.seq.saturating_add(it));
        Ok(Self {
            journal,
            session: session.id.clone(),
            writer: (!is_stored).then_some(writer),
            // The writer still has to see the earlier events.
            at: if is_stored { after.seq } else { 0 },
            after,
            last: last.min(session.head),
            is_whole: last >= session.head && session.state == State::Idle,
            is_done: false,
            frame_end: if format == "ag-ui" { b"\n\n" } else { b"\n" },
        })
    }

    /// The next piece; none at the end.
    pub async fn next(&mut self) -> journal::Result<Option<Bytes>> {
        let mut out = Vec::new();
        while !self.is_done && out.is_empty() {
            if self.at >= self.last {
                self.is_done = true;
                if let Some(writer) = self.writer.as_mut().filter(|_| self.is_whole) {
                    writer.end(&mut out);
                }
                break;
            }
            let wanted = u32::try_from(self.last - self.at).unwrap_or(u32::MAX);
            let read = Read {
                after: self.at,
                deltas: Deltas::Keep,
                max_events: wanted.min(PAGE.0),
                max_bytes: PAGE.1,
            };
            let page = self.journal.read(&self.session, read).await?;
            for stored in &page.events {
                self.write(stored, &mut out);
            }
            self.at = page.next.max(self.at + 1);
        }
        Ok((!out.is_empty()).then(|| out.into()))
    }

    fn write(&mut self, stored: &Stored, out: &mut Vec<u8>) {
        let Some(writer) = &mut self.writer else {
            out.extend_from_slice(&stored.line);
            out.push(b'\n');
            return;
        };
        let before = out.len();
        if let Some(event) = stored.event() {
            writer.event(&event, out);
        }
        if stored.seq <= self.after.seq {
            out.truncate(before);
        } else if stored.seq == self.after.seq + 1 {
            let known = end_of(&out[before..], self.after.n_known, self.frame_end);
            out.drain(before..before + known);
        }
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

/// The frames in what one event has become.
pub(crate) fn frames<'a>(format: &str, bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let lines = bytes.split(|it| *it == b'\n');
    match format {
        "text" | "markdown" | "html" => vec![bytes],
        "ag-ui" => lines.filter_map(|it| it.strip_prefix(b"data: ")).collect(),
        _ => lines.filter(|it| !it.is_empty()).collect(),
    }
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
    fn a_wish_for_more_output_is_a_number_or_all_of_it() {
        let wish = |text: &str| text.parse::<MaxOutput>().ok().map(|it| it.0);
        assert_eq!(wish("full"), Some(None));
        assert_eq!(wish("8192"), Some(Some(8192)));
        assert_eq!(wish("10000"), Some(Some(16384)));
        assert_eq!(wish("0"), Some(Some(1024)));
        assert_eq!(wish("99999999999"), Some(Some(16 << 20)));
        for text in ["", "all", "-1", "8k"] {
            assert_eq!(wish(text), None, "{text}");
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
