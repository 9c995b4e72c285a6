//! The last events of a log that is being followed.

use std::collections::VecDeque;

use bytes::Bytes;
use model::Timestamp;

use crate::entry::{Deltas, Entry, Page, PageBudget, Read, Stored};
use crate::line::Line;

/// As much as a page holds: a follower that is further behind reads the store.
const MAX_EVENTS: usize = Read::PAGE_EVENTS as usize;
const MAX_BYTES: usize = Read::PAGE_BYTES;

/// Events without a gap, the last of the log among them as far as this process has written it. The log only
/// grows, so they stay true when another process appends.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    events: VecDeque<Stored>,
    n_bytes: usize,
}

impl Tail {
    /// Adds events that are stored now.
    pub(crate) fn extend(&mut self, entries: &[Entry], now: Timestamp) {
        for entry in entries {
            let line = match &entry.line {
                Line::Whole(line) if line.len() <= MAX_BYTES => line.clone(),
                // It is too long to be kept, and there must be no gap.
                Line::Whole(_) | Line::Split { .. } => {
                    *self = Self::default();
                    continue;
                }
            };
            // Another process has written in between.
            if self.events.back().is_some_and(|it| it.seq + 1 != entry.seq) {
                *self = Self::default();
            }
            self.push(entry, line, now);
        }
    }

    fn push(&mut self, entry: &Entry, line: Bytes, now: Timestamp) {
        self.n_bytes += line.len();
        self.events.push_back(Stored {
            seq: entry.seq,
            at: entry.at.unwrap_or(now),
            kind: entry.kind,
            line,
            cut: entry.line_cut,
            is_damaged: false,
        });
        while self.events.len() > MAX_EVENTS || self.n_bytes > MAX_BYTES {
            if let Some(oldest) = self.events.pop_front() {
                self.n_bytes -= oldest.line.len();
            }
        }
    }

    /// The number of its last event.
    #[cfg(feature = "postgres")]
    pub(crate) fn last(&self) -> Option<u64> {
        self.events.back().map(|it| it.seq)
    }

    /// What [`crate::Journal::read`] would read; `None` when that begins before the tail or there is nothing new in it.
    pub(crate) fn page(&self, read: Read) -> Option<Page> {
        // The cursor before the first event; it may not be computed from the reader's, which can be any number.
        let start = self.events.front()?.seq - 1;
        let last = self.events.back()?.seq;
        if !(start..last).contains(&read.after) || read.deltas == Deltas::Skip {
            return None;
        }
        let mut room = PageBudget::of(read);
        let mut events = Vec::new();
        let from = usize::try_from(read.after - start).ok()?;
        for event in self.events.range(from..) {
            if !room.has_some() {
                break;
            }
            room.take(event.line.len());
            events.push(event.clone());
        }
        Some(Page {
            next: events.last()?.seq,
            events,
            head: last,
        })
    }
}

#[cfg(test)]
mod tests {
    use model::{BodyKind, Event};

    use super::*;

    fn entry(seq: u64, length: usize) -> Entry {
        let text = "x".repeat(length);
        let json = format!(
            r#"{{"v":1,"seq":{seq},"session":"s","engine":"claude","origin":"agent","type":"notice.raised","data":{{"level":"info","code":"test","text":"{text}"}}}}"#
        );
        Entry::of(&Event::from_json(&json).unwrap(), None).unwrap()
    }

    fn extend(tail: &mut Tail, numbers: impl IntoIterator<Item = u64>, length: usize) {
        let entries: Vec<_> = numbers.into_iter().map(|it| entry(it, length)).collect();
        tail.extend(&entries, Timestamp::from_millis(5));
    }

    /// The numbers of a page after `after`, and its head.
    fn page(tail: &Tail, after: u64) -> Option<(Vec<u64>, u64)> {
        let page = tail.page(Read::page(after))?;
        Some((page.events.iter().map(|it| it.seq).collect(), page.head))
    }

    #[test]
    fn a_tail_serves_what_comes_after_a_cursor_in_it() {
        let mut tail = Tail::default();
        assert_eq!(page(&tail, 0), None);
        extend(&mut tail, 5..=7, 1);
        let pages = [3, 4, 5, 6, 7, 8, u64::MAX].map(|after| page(&tail, after));
        let expected = [
            None,
            Some((vec![5, 6, 7], 7)),
            Some((vec![6, 7], 7)),
            Some((vec![7], 7)),
            None,
            None,
            None,
        ];
        assert_eq!(pages, expected);
        let stored = tail.page(Read::one(5)).unwrap();
        assert_eq!((stored.next, stored.events.len()), (5, 1));
        let (kind, at) = (stored.events[0].kind, stored.events[0].at);
        assert_eq!((kind, at.millis()), (BodyKind::NoticeRaised, 5));
    }

    #[test]
    fn a_gap_or_a_long_event_starts_it_anew() {
        let mut tail = Tail::default();
        extend(&mut tail, 1..=3, 1);
        extend(&mut tail, [9], 1);
        assert_eq!((page(&tail, 2), page(&tail, 8)), (None, Some((vec![9], 9))));
        extend(&mut tail, [10], MAX_BYTES);
        assert_eq!((page(&tail, 8), page(&tail, 9)), (None, None));
        extend(&mut tail, [11], 1);
        assert_eq!(page(&tail, 10), Some((vec![11], 11)));
    }

    #[test]
    fn it_is_bounded() {
        let mut tail = Tail::default();
        extend(&mut tail, 1..=1000, 1);
        assert_eq!(tail.events.front().unwrap().seq, 1001 - MAX_EVENTS as u64);
        extend(&mut tail, 1001..=1100, 10 << 10);
        assert!(tail.n_bytes <= MAX_BYTES && tail.events.len() > 20);
        let n_bytes: usize = tail.events.iter().map(|it| it.line.len()).sum();
        assert_eq!(tail.n_bytes, n_bytes);
    }
}
