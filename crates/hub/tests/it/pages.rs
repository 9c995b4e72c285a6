//! The journal page by page.

use std::sync::Arc;

use hub::{LogPages, SessionPages, Target};
use journal::{Deltas, Journal, NewSession, SessionQuery};
use model::SessionId;

use crate::harness::{lines, outcomes};
use crate::paused::{Paused, to};

async fn create(journal: &Arc<dyn Journal>, n: usize) {
    let session = NewSession {
        home: journal::Node::default(),
        id: SessionId::new(format!("s{n:03}")),
        engine: "claude".to_owned(),
        cwd: None,
        title: None,
        parent: None,
    };
    journal.create(session).await.unwrap();
}

/// The ids of all sessions, page by page.
async fn pages(journal: &Arc<dyn Journal>) -> Vec<Vec<String>> {
    let mut pages = SessionPages::new(&**journal, SessionQuery::default());
    let mut all = Vec::new();
    while let Some(page) = pages.next().await.unwrap() {
        all.push(page.iter().map(|it| it.id.to_string()).collect());
    }
    assert_eq!(pages.next().await.unwrap(), None);
    all
}

#[tokio::test(start_paused = true)]
async fn the_list_of_sessions_has_pages_of_five_hundred() {
    let paused = Paused::new();
    let journal = &paused.journal;
    assert_eq!(pages(journal).await, [Vec::<String>::new()]);
    for n in 0..501 {
        create(journal, n).await;
    }
    let all: Vec<String> = (0..501).rev().map(|n| format!("s{n:03}")).collect();
    assert_eq!(pages(journal).await, [&all[..500], &all[500..]]);
}

/// The numbers of the events in a span of a log.
async fn numbers(paused: &Paused, session: &SessionId<'_>, span: std::ops::Range<u64>) -> Vec<u64> {
    let mut pages = LogPages::new(&*paused.journal, session, span, Deltas::Skip);
    let mut numbers = Vec::new();
    while let Some(events) = pages.next().await.unwrap() {
        numbers.extend(events.iter().map(|it| it.seq));
    }
    numbers
}

#[tokio::test(start_paused = true)]
async fn the_pages_of_a_log_cover_its_span() {
    let paused = Paused::new();
    let hub = paused.hub().await;
    let submitted = hub.submit(paused.short(Target::New)).await.unwrap();
    let session = submitted.session;
    let mut n_runs = 1;
    // More than two pages.
    while lines(&*paused.journal, &session).await.len() < 600 {
        hub.submit(paused.short(to(&session))).await.unwrap();
        n_runs += 1;
        outcomes(&*paused.journal, &session, n_runs).await;
    }
    let head = lines(&*paused.journal, &session).await.len() as u64;
    let all = numbers(&paused, &session, 0..head).await;
    assert_eq!(all.last(), Some(&head));
    for span in [0..1, 3..3, 2..9, 255..258, 0..head - 1, head - 1..head] {
        let inside = all
            .iter()
            .filter(|it| **it > span.start && **it <= span.end);
        let expected: Vec<u64> = inside.copied().collect();
        assert_eq!(numbers(&paused, &session, span).await, expected);
    }
    // Where retention has removed the rest, there is an end all the same.
    assert_eq!(numbers(&paused, &session, 0..head + 300).await, all);
    hub.stop().await;
}
