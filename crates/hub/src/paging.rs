//! The journal page by page: the log of a session from one event to another, and the list of sessions.

use std::ops::Range;

use journal::{Deltas, Journal, ListCursor, Read, Result, Session, SessionQuery, Stored};
use model::SessionId;

/// Sessions of a page.
const PAGE_SESSIONS: u32 = 500;

/// The pages of a log; each holds at least one event, unless all of its events are skipped deltas.
#[expect(missing_debug_implementations, reason = "a journal has none")]
pub struct LogPages<'a> {
    journal: &'a dyn Journal,
    session: &'a SessionId<'a>,
    /// Behind the first number, up to the second.
    span: Range<u64>,
    deltas: Deltas,
}

impl<'a> LogPages<'a> {
    pub fn new(
        journal: &'a dyn Journal,
        session: &'a SessionId<'a>,
        span: Range<u64>,
        deltas: Deltas,
    ) -> Self {
        Self {
            journal,
            session,
            span,
            deltas,
        }
    }

    /// None at the end of the span.
    pub async fn next(&mut self) -> Result<Option<Vec<Stored>>> {
        let Range { start, end } = self.span;
        if start >= end {
            return Ok(None);
        }
        let read = Read {
            deltas: self.deltas,
            ..Read::page(start).up_to(end)
        };
        let mut page = self.journal.read(self.session, read).await?;
        // A page of skipped deltas may reach further than the span.
        page.events.retain(|it| it.seq <= end);
        // Retention may have removed the rest of the log: a page that is empty must not be read again.
        self.span.start = page.next.max(start + 1);
        Ok(Some(page.events))
    }
}

/// The pages of the list of sessions, the newest first.
#[expect(missing_debug_implementations, reason = "a journal has none")]
pub struct SessionPages<'a> {
    journal: &'a dyn Journal,
    query: SessionQuery,
    after: Option<ListCursor>,
    is_over: bool,
}

impl<'a> SessionPages<'a> {
    pub fn new(journal: &'a dyn Journal, query: SessionQuery) -> Self {
        Self {
            journal,
            query,
            after: None,
            is_over: false,
        }
    }

    /// None behind the last page.
    pub async fn next(&mut self) -> Result<Option<Vec<Session>>> {
        if self.is_over {
            return Ok(None);
        }
        let (query, after) = (self.query.clone(), self.after.take());
        let page = self.journal.list(query, after, PAGE_SESSIONS).await?;
        self.is_over = page.next.is_none();
        self.after = page.next;
        Ok(Some(page.sessions))
    }
}
