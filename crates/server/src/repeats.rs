//! Prompts that are sent twice are run once: a client without a reply may send its prompt again with the
//! same key, and gets the reply to the first.
//!
//! Replies are kept in memory, for a day and for a bounded number of prompts; a restart forgets them. A
//! refused prompt is forgotten at once, because nothing came of it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use crate::error::{ApiError, Result};
use crate::tokens::Caller;

/// For how long an answer is kept.
const KEEP: Duration = Duration::from_secs(24 * 3600);
/// Answers that are kept, the newest ones: about half a kilobyte each.
const MAX_KEPT: usize = 4096;
/// Bytes of a key that a client chooses.
const MAX_KEY: usize = 255;

type Digest = [u8; 32];

/// Which prompt this is, as its client calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestKey(Digest);

impl RequestKey {
    /// A key that the client has chosen to be the only one among those of its token.
    pub(crate) fn of_token(caller: &Caller, key: &str) -> Result<Self> {
        let is_fine = !key.is_empty() && key.len() <= MAX_KEY && !key.contains(char::is_control);
        match is_fine {
            // The word in front keeps the keys of tokens apart from those of connections.
            true => Ok(Self(digest(&("token", &caller.key, key)))),
            false => Err(ApiError::bad(format!(
                "an idempotency key has 1 to {MAX_KEY} bytes and no control characters"
            ))),
        }
    }

    /// The `requestId` of a control. Many clients count from 1 on every connection, so it says nothing
    /// beyond its connection.
    pub(crate) fn of_connection(connection: u64, request: &Value) -> Self {
        Self(digest(&("connection", connection, request)))
    }
}

fn digest(value: &impl Serialize) -> Digest {
    let json = serde_json::to_vec(value).expect("requests are plain data with string keys");
    Sha256::digest(json).into()
}

/// What was answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answered {
    pub(crate) answer: Value,
    /// It is the answer to an earlier request.
    pub(crate) is_repeat: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Repeats {
    known: Mutex<Known>,
    n_connections: AtomicU64,
}

#[derive(Debug, Default)]
struct Known {
    requests: HashMap<RequestKey, Request>,
    /// Oldest first. Entries that are no longer in the map under their number are skipped.
    order: VecDeque<(RequestKey, u64)>,
    n_requests: u64,
}

#[derive(Debug)]
struct Request {
    number: u64,
    at: Instant,
    body: Digest,
    answer: Answer,
}

/// None until the work is done.
type Answer = watch::Receiver<Option<Result<Value>>>;

enum Entered {
    Known(Answer),
    New(u64, watch::Sender<Option<Result<Value>>>, Answer),
}

impl Repeats {
    /// A number for a connection, which no other has.
    pub(crate) fn number_connection(&self) -> u64 {
        self.n_connections.fetch_add(1, Ordering::Relaxed)
    }

    /// Does the work, unless the same request is being worked on or was answered. The same key with
    /// another body is a mistake.
    pub(crate) async fn once(
        self: &Arc<Self>,
        key: RequestKey,
        body: &impl Serialize,
        work: impl Future<Output = Result<Value>> + Send + 'static,
    ) -> Result<Answered> {
        let entered = self.known().enter(key, digest(body), Instant::now())?;
        let (mut answer, is_repeat) = match entered {
            Entered::Known(answer) => (answer, true),
            Entered::New(number, tx, answer) => {
                let repeats = Arc::clone(self);
                // A task of its own, which survives a client that disconnects: that is when repeats come.
                tokio::spawn(async move {
                    let done = work.await;
                    // Before the answer: a retry at once must not get the old refusal.
                    if done.is_err() {
                        repeats.known().forget(key, number);
                    }
                    tx.send_replace(Some(done));
                });
                (answer, false)
            }
        };
        let done = answer.wait_for(Option::is_some).await;
        let done = done.ok().and_then(|it| it.clone());
        // The sender is gone without an answer only when the work has panicked.
        let answer = done.unwrap_or_else(|| {
            let words = "the prompt could not be worked on";
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Err(ApiError::new(status, "internal", words))
        })?;
        Ok(Answered { answer, is_repeat })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn enter(&mut self, key: RequestKey, body: Digest, now: Instant) -> Result<Entered> {
        // A sender that is gone without an answer has panicked.
        let is_alive = |it: &Answer| it.borrow().is_some() || it.has_changed().is_ok();
        let known = self.requests.get(&key);
        let known = known.filter(|it| now.duration_since(it.at) < KEEP && is_alive(&it.answer));
        if let Some(known) = known {
            return match known.body == body {
                true => Ok(Entered::Known(known.answer.clone())),
                false => {
                    let message = "another prompt was sent with the same key";
                    let hint = "give each prompt a key of its own; only a repeat has the same";
                    Err(ApiError::conflict("key_reused", message).hint(hint))
                }
            };
        }
        self.n_requests += 1;
        let number = self.n_requests;
        let (tx, answer) = watch::channel(None);
        let request = Request {
            number,
            at: now,
            body,
            answer: answer.clone(),
        };
        self.requests.insert(key, request);
        self.order.push_back((key, number));
        while self.order.len() > MAX_KEPT
            && let Some((key, number)) = self.order.pop_front()
        {
            self.forget(key, number);
        }
        Ok(Entered::New(number, tx, answer))
    }

    fn forget(&mut self, key: RequestKey, number: u64) {
        if let Entry::Occupied(entry) = self.requests.entry(key)
            // The key may belong to a later request by now.
            && entry.get().number == number
        {
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::json;
    use tokio::sync::Notify;

    use super::*;

    fn caller(key: &str) -> Caller {
        Caller {
            key: Some(key.to_owned()),
            role: crate::tokens::Role::Prompt,
        }
    }

    fn key(name: &str) -> RequestKey {
        RequestKey::of_token(&caller("a"), name).unwrap()
    }

    async fn ask(
        repeats: &Arc<Repeats>,
        key: RequestKey,
        body: &str,
        answer: Result<Value>,
    ) -> Result<Answered> {
        repeats.once(key, &body, async move { answer }).await
    }

    fn answered(answer: Value, is_repeat: bool) -> Result<Answered> {
        Ok(Answered { answer, is_repeat })
    }

    #[tokio::test]
    async fn a_repeat_gets_the_first_answer_and_another_body_none() {
        let repeats = Arc::default();
        let first = ask(&repeats, key("k"), "x", Ok(json!(1))).await;
        assert_eq!(first, answered(json!(1), false));
        let again = ask(&repeats, key("k"), "x", Ok(json!(2))).await;
        assert_eq!(again, answered(json!(1), true));
        let other = ask(&repeats, key("k"), "y", Ok(json!(3))).await;
        let err = other.unwrap_err();
        assert_eq!((err.status.as_u16(), err.code), (409, "key_reused"));
        let others = RequestKey::of_token(&caller("b"), "k").unwrap();
        assert_eq!(
            ask(&repeats, others, "y", Ok(json!(4))).await,
            answered(json!(4), false)
        );
    }

    #[tokio::test]
    async fn what_was_refused_may_be_tried_again() {
        let repeats = Arc::default();
        let refused = ask(&repeats, key("k"), "x", Err(ApiError::bad("no"))).await;
        assert_eq!(refused, Err(ApiError::bad("no")));
        let again = ask(&repeats, key("k"), "y", Ok(json!(1))).await;
        assert_eq!(again, answered(json!(1), false));
    }

    #[tokio::test]
    async fn who_hangs_up_changes_nothing() {
        let repeats: Arc<Repeats> = Arc::default();
        let go = Arc::new(Notify::new());
        let gate = Arc::clone(&go);
        let work = async move {
            gate.notified().await;
            Ok(json!(1))
        };
        let mut first = Box::pin(repeats.once(key("k"), &"x", work));
        assert_eq!((&mut first).now_or_never(), None);
        drop(first);
        let mut second = Box::pin(ask(&repeats, key("k"), "x", Ok(json!(2))));
        assert_eq!((&mut second).now_or_never(), None);
        go.notify_one();
        assert_eq!(second.await, answered(json!(1), true));
    }

    #[tokio::test]
    async fn what_has_panicked_is_not_waited_for() {
        let repeats: Arc<Repeats> = Arc::default();
        let work = async { panic!("on purpose") };
        let err = repeats.once(key("k"), &"x", work).await.unwrap_err();
        assert_eq!(err.status.as_u16(), 500);
        let again = ask(&repeats, key("k"), "x", Ok(json!(1))).await;
        assert_eq!(again, answered(json!(1), false));
    }

    #[test]
    fn a_bounded_number_is_kept_for_a_bounded_time() {
        let mut known = Known::default();
        let now = Instant::now();
        let mut senders = Vec::new();
        let mut enter =
            |known: &mut Known, name: &str, at| match known.enter(key(name), [0; 32], at) {
                Ok(Entered::New(_, tx, _)) => {
                    senders.push(tx);
                    true
                }
                Ok(Entered::Known(_)) => false,
                Err(err) => panic!("{err:?}"),
            };
        assert!(enter(&mut known, "first", now));
        assert!(!enter(&mut known, "first", now));
        assert!(enter(&mut known, "first", now + KEEP));
        for n in 0..2 * MAX_KEPT {
            assert!(enter(&mut known, &n.to_string(), now));
        }
        assert_eq!(
            (known.requests.len(), known.order.len()),
            (MAX_KEPT, MAX_KEPT)
        );
        assert!(enter(&mut known, "first", now));
    }

    #[test]
    fn keys_are_short_and_readable() {
        for bad in ["", "a\nb", &"x".repeat(256)] {
            assert!(RequestKey::of_token(&caller("a"), bad).is_err(), "{bad}");
        }
        assert_ne!(
            RequestKey::of_connection(1, &json!("r")),
            RequestKey::of_connection(2, &json!("r"))
        );
    }
}
