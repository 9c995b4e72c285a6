//! What other nodes change: heard by LISTEN on a connection of its own, and found by a slow poll.

use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use model::SessionId;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_postgres::{AsyncMessage, Row};

use super::address::{Address, Messages};
use super::call::call;
use super::client::{Client, Directness};
use super::hints::{CHANNEL, Hints, read_payload};
use super::pool::Pool;
use super::query::{Query, get, text};
use super::text::Text;
use crate::error::Result;
use crate::watch::{Change, Scope};

/// Between two polls while notifications are heard.
const POLL: Duration = Duration::from_secs(1);
/// And while they are not: LISTEN does not work through a pooler, for example.
const POLL_ALONE: Duration = Duration::from_millis(250);
/// Between two tries to listen.
const RETRY: Duration = Duration::from_secs(2);
/// Until a node is connected, listens and hears itself.
const ECHO: Duration = Duration::from_secs(2);
/// From the first new watcher to the poll for it and those that come with it.
const GATHER: Duration = Duration::from_millis(10);
/// Sessions that one poll of the list reads.
const PAGE: i64 = 1000;

/// Wakes the watchers of what others change, until it is dropped.
pub(super) async fn follow(
    hints: Arc<Hints>,
    pool: Arc<Pool>,
    address: Address,
    directness: Directness,
) {
    let mut follower = Follower {
        hints,
        pool,
        sessions: HashMap::new(),
        changed: HashMap::new(),
    };
    let sender = follower.hints.sender.clone();
    let open = |pause| Listening::begin(address.clone(), sender.clone(), pause);
    let mut listening = open(Duration::ZERO);
    loop {
        // A pooler in transaction mode lets nobody listen.
        directness.set_can_listen(listening.is_open());
        follower.poll().await;
        let pause = if listening.is_open() {
            POLL
        } else {
            POLL_ALONE
        };
        let poll_at = Instant::now() + pause;
        let hints = Arc::clone(&follower.hints);
        loop {
            tokio::select! {
                signal = listening.next() => match signal {
                    Some(Signal::Payload(payload)) if follower.hear(&payload) => (),
                    Some(_) => break,
                    None => {
                        listening = open(RETRY);
                        break;
                    }
                },
                () = hints.is_watched.notified() => {
                    // Others may come with it: one poll finds them all.
                    sleep(GATHER).await;
                    break;
                }
                () = sleep_until(poll_at) => break,
            }
        }
    }
}

/// The connection for notifications, which is made while the polls go on.
enum Listening {
    Open(Box<Listener>),
    Opening(Pin<Box<dyn Future<Output = Option<Listener>> + Send>>),
}

enum Signal {
    Payload(String),
    /// From now on notifications are heard; what came before has to be polled.
    Connected,
}

impl Listening {
    fn begin(address: Address, sender: String, pause: Duration) -> Self {
        Self::Opening(Box::pin(async move {
            sleep(pause).await;
            Listener::open(&address, &sender).await
        }))
    }

    fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// `None` when the connection is lost, or could not be made.
    async fn next(&mut self) -> Option<Signal> {
        match self {
            Self::Open(listener) => listener.next().await.map(Signal::Payload),
            Self::Opening(opening) => {
                *self = Self::Open(Box::new(opening.await?));
                Some(Signal::Connected)
            }
        }
    }
}

/// A connection that hears notifications.
struct Listener {
    /// The connection lives as long as its client.
    _client: Client,
    messages: Messages,
}

impl Listener {
    /// `None` when it cannot be made, or is made and hears nothing.
    async fn open(address: &Address, sender: &str) -> Option<Self> {
        timeout(ECHO * 2, Self::connect(address, sender))
            .await
            .ok()?
    }

    async fn connect(address: &Address, sender: &str) -> Option<Self> {
        let (client, mut messages) = address.connect().await.ok()?;
        let client = Client::new(client, Directness::default());
        hear_oneself(&client, &mut messages, sender).await?;
        Some(Self {
            _client: client,
            messages,
        })
    }

    /// The next payload; `None` when the connection is lost.
    async fn next(&mut self) -> Option<String> {
        loop {
            match self.messages.next().await? {
                Ok(AsyncMessage::Notification(it)) if it.channel() == CHANNEL => {
                    return Some(it.payload().to_owned());
                }
                Ok(_) => (),
                Err(_) => return None,
            }
        }
    }
}

/// Listens, and waits for a notification of one's own.
async fn hear_oneself(client: &Client, messages: &mut Messages, sender: &str) -> Option<()> {
    // Never in a transaction: the queue of notifications would grow meanwhile.
    let listen = format!("LISTEN {CHANNEL}");
    let echo = Query::new("SELECT pg_notify($1, $2)");
    let echo = echo.text(CHANNEL).text(sender);
    let mut listening = pin!(async {
        client.batch_execute(&listen).await.ok()?;
        echo.rows(client).await.ok()
    });
    let (mut is_listening, mut is_heard) = (false, false);
    // The connection moves only while its messages are waited for, so both go on until both are done.
    while !(is_listening && is_heard) {
        tokio::select! {
            sent = &mut listening, if !is_listening => is_listening = sent.map(|_| true)?,
            message = messages.next() => match message? {
                Ok(AsyncMessage::Notification(it)) => is_heard |= it.payload() == sender,
                Ok(_) => (),
                Err(_) => return None,
            },
        }
    }
    Some(())
}

/// Where a watched session stood at the last poll.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    key: i64,
    head: i64,
    commands: i64,
    epoch: i64,
    changed_at: SystemTime,
}

struct Follower {
    hints: Arc<Hints>,
    pool: Arc<Pool>,
    sessions: HashMap<SessionId<'static>, Place>,
    /// Sessions that changed lately, for those who watch everything.
    changed: HashMap<i64, SystemTime>,
}

impl Follower {
    /// Wakes the watchers of the sessions that a notification names; false when a poll has to find them.
    fn hear(&mut self, payload: &str) -> bool {
        let Some(changed) = read_payload(payload, &self.hints.sender) else {
            return false;
        };
        if changed.is_empty() {
            return true;
        }
        let by_key: HashMap<_, _> = self.sessions.iter().map(|(id, it)| (it.key, id)).collect();
        let mut changes = Vec::new();
        for (key, is_commands) in changed {
            if let Some(id) = by_key.get(&key) {
                let id = (*id).clone();
                changes.push(Change::ForeignLog(id.clone(), None));
                changes.extend(is_commands.then_some(Change::Commands(id)));
            }
        }
        self.hints.watchers.notify(changes);
        self.hints.watchers.notify_list();
        // One that is not known yet may have been made just now.
        self.is_complete()
    }

    fn is_complete(&self) -> bool {
        let scopes = self.hints.watchers.scopes();
        let mut sessions = scopes.iter().filter_map(session_of);
        sessions.all(|it| self.sessions.contains_key(it))
    }

    /// Compares what is watched with what is known of it. A failure is not told: the next poll comes soon, and
    /// whoever reads learns what is wrong.
    async fn poll(&mut self) {
        let scopes = self.hints.watchers.scopes();
        let mut ids: Vec<_> = scopes.iter().filter_map(session_of).cloned().collect();
        ids.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        ids.dedup();
        self.sessions.retain(|it, _| ids.contains(it));
        if !ids.is_empty()
            && let Ok(places) = self.read_places(&ids).await
        {
            self.compare(&ids, places);
        }
        if scopes.contains(&Scope::All)
            && let Ok(changed) = self.read_changed().await
            && changed != self.changed
        {
            let is_news = |(key, at): (&i64, &SystemTime)| self.changed.get(key) != Some(at);
            // What is only in the older one has left the window, and is no news.
            if changed.iter().any(is_news) {
                self.hints.watchers.notify_list();
            }
            self.changed = changed;
        }
    }

    fn compare(&mut self, ids: &[SessionId<'static>], places: HashMap<SessionId<'static>, Place>) {
        let mut changes = Vec::new();
        for id in ids {
            let (old, new) = (self.sessions.get(id), places.get(id));
            match (old, new) {
                (Some(_), None) => changes.push(Change::Removed(id.clone())),
                // It was made again.
                (Some(old), Some(new)) if old.key != new.key => {
                    changes.push(Change::Removed(id.clone()));
                }
                (Some(old), Some(new)) => {
                    if (old.commands, old.epoch) != (new.commands, new.epoch) {
                        changes.push(Change::Commands(id.clone()));
                    }
                    if (old.head, old.changed_at) != (new.head, new.changed_at) {
                        let head = Some(new.head as u64);
                        changes.push(Change::ForeignLog(id.clone(), head));
                    }
                }
                // It may have changed between the first hint of its watcher and now.
                (None, Some(_)) => changes.push(Change::Commands(id.clone())),
                (None, None) => (),
            }
        }
        self.hints.watchers.notify(changes);
        self.sessions = places;
    }

    async fn read_places(
        &self,
        ids: &[SessionId<'static>],
    ) -> Result<HashMap<SessionId<'static>, Place>> {
        let sql = "SELECT s.id, s.key, l.head, l.commands, l.epoch, s.changed_at
            FROM linkspan.sessions s JOIN linkspan.logs l ON l.session = s.key WHERE s.id = ANY($1)";
        let rows = call(&self.pool, 0, |client| {
            let ids: Vec<_> = ids
                .iter()
                .map(|it| Text::from(it.as_str().to_owned()))
                .collect();
            Box::pin(async move { Query::new(sql).bind(ids).rows(&client).await })
        });
        rows.await?.iter().map(place).collect()
    }

    /// Stamps are taken before the commit, so a slow transaction shows up behind newer ones: the window is
    /// longer than a transaction may last.
    async fn read_changed(&self) -> Result<HashMap<i64, SystemTime>> {
        let sql = "SELECT key, changed_at FROM linkspan.sessions
            WHERE changed_at > now() - interval '120 s' ORDER BY changed_at DESC LIMIT $1";
        let rows = call(&self.pool, 0, |client| {
            Box::pin(async move { Query::new(sql).bind(PAGE).rows(&client).await })
        });
        let rows = rows.await?;
        rows.iter()
            .map(|it| Ok((get(it, 0)?, get(it, 1)?)))
            .collect()
    }
}

fn session_of(scope: &Scope) -> Option<&SessionId<'static>> {
    match scope {
        Scope::Session(id) | Scope::Commands(id) => Some(id),
        Scope::All => None,
    }
}

fn place(row: &Row) -> Result<(SessionId<'static>, Place)> {
    let place = Place {
        key: get(row, 1)?,
        head: get(row, 2)?,
        commands: get(row, 3)?,
        epoch: get(row, 4)?,
        changed_at: get(row, 5)?,
    };
    Ok((SessionId::new(text(row, 0)?), place))
}
