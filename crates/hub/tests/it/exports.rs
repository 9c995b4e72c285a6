//! Exports: a stored session in any format, from any cursor, up to any event.

use std::sync::Arc;

use formats::WriterConfig;
use hub::{Cursor, Export, Target};
use journal::{Journal, Session};

use crate::harness::{lines, outcomes};
use crate::paused::{Paused, to};

async fn export(
    journal: &Arc<dyn Journal>,
    session: &Session,
    format: &str,
    after: Cursor,
    limit: Option<u64>,
) -> String {
    let config = WriterConfig {
        profile: None,
        live: false,
        began: None,
        color: false,
        served: None,
    };
    let journal = Arc::clone(journal);
    let mut export = Export::new(journal, session, format, &config, after, limit).unwrap();
    let mut text = Vec::new();
    while let Some(piece) = export.next().await.unwrap() {
        assert!(!piece.is_empty());
        text.extend_from_slice(&piece);
    }
    assert_eq!(export.next().await.unwrap(), None);
    String::from_utf8(text).unwrap()
}

/// A session with two runs.
async fn played(paused: &Paused) -> Session {
    let hub = paused.hub().await;
    let session = hub.submit(paused.short(Target::New)).await.unwrap().session;
    hub.submit(paused.short(to(&session))).await.unwrap();
    outcomes(&*paused.journal, &session, 2).await;
    hub.stop().await;
    paused
        .journal
        .find_session(&session)
        .await
        .unwrap()
        .unwrap()
}

fn after(seq: u64) -> Cursor {
    Cursor { seq, n_known: 0 }
}

#[tokio::test(start_paused = true)]
async fn the_canonical_export_is_the_log_from_any_cursor_to_any_event() {
    let paused = Paused::new();
    let session = played(&paused).await;
    let stored = lines(&*paused.journal, &session.id).await;
    let expected = |events: &[String]| {
        events
            .iter()
            .map(|it| format!("{it}\n"))
            .collect::<String>()
    };
    for seq in [0, 1, 5, session.head - 1, session.head] {
        let rest = &stored[seq as usize..];
        let got = export(&paused.journal, &session, "linkspan", after(seq), None).await;
        assert_eq!(got, expected(rest), "after {seq}");
        let two = export(&paused.journal, &session, "linkspan", after(seq), Some(2)).await;
        assert_eq!(two, expected(&rest[..rest.len().min(2)]), "two after {seq}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cursor_within_an_event_skips_the_frames_that_are_known() {
    let paused = Paused::new();
    let session = played(&paused).await;
    let export = async |after| export(&paused.journal, &session, "ag-ui", after, None).await;
    let whole = export(after(0)).await;
    let mut n_split = 0;
    for seq in 0..session.head {
        let all = export(after(seq)).await;
        let rest = export(after(seq + 1)).await;
        assert!(whole.ends_with(&all) && all.ends_with(&rest), "after {seq}");
        let own: Vec<&str> = all[..all.len() - rest.len()]
            .split_inclusive("\n\n")
            .collect();
        for n_known in 1..=own.len() {
            let got = export(Cursor { seq, n_known }).await;
            assert_eq!(got, own[n_known..].concat() + &rest, "{seq}.{n_known}");
        }
        n_split += usize::from(own.len() > 1);
    }
    assert!(n_split > 0, "no event has two frames");
}

#[tokio::test(start_paused = true)]
async fn only_a_complete_stream_of_an_idle_session_is_closed() {
    let paused = Paused::new();
    let session = played(&paused).await;
    let export = async |session: &Session, limit| {
        export(&paused.journal, session, "html", after(0), limit).await
    };
    let is_closed = |it: &str| it.trim_end().ends_with("</html>");
    assert!(is_closed(&export(&session, None).await));
    assert!(is_closed(&export(&session, Some(session.head)).await));
    assert!(!is_closed(&export(&session, Some(session.head - 1)).await));
    let running = Session {
        state: journal::State::Running,
        ..session.clone()
    };
    assert!(!is_closed(&export(&running, None).await));
}

#[tokio::test(start_paused = true)]
async fn an_export_of_a_log_that_is_gone_ends() {
    let paused = Paused::new();
    let session = played(&paused).await;
    let whole = export(&paused.journal, &session, "linkspan", after(0), None).await;
    // Retention removed the end of the log after the session was looked up.
    let longer = Session {
        head: session.head + 600,
        ..session
    };
    let rest = export(&paused.journal, &longer, "linkspan", after(0), None).await;
    assert_eq!(rest, whole);
}
