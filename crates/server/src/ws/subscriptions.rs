//! Subscriptions of a client: which sessions it follows, and from where on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::ws::Utf8Bytes;
use futures_util::future::select_all;
use hub::{Cursor, Delivered, Detached, Followed, Follower, Hub, Scope};
use journal::{State, WaitingAsk};
use model::{SessionId, Timestamp};
use serde_json::{Value, json};

use super::client_format::ClientFormat;
use super::controls::{Control, PromptedSession};
use super::{asks, requests};
use crate::config::MAX_SUBSCRIPTIONS;
use crate::error::{ApiError, Result};

/// Which sessions a client hears of before it has subscribed to any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    All,
    /// Those that it has given a prompt to, from that prompt on.
    Own,
    /// Those that it names.
    Named,
}

/// Everything, or some sessions one by one.
#[derive(Debug)]
pub(super) struct Subscriptions {
    format: ClientFormat,
    interest: Interest,
    followers: Vec<SessionFollower>,
    /// The last event that was delivered of some sessions.
    tracked: HashMap<SessionId<'static>, u64>,
}

#[derive(Debug)]
struct SessionFollower {
    /// None is all of them.
    session: Option<SessionId<'static>>,
    follower: Follower,
    /// Where the client was; it may know some frames of the next event.
    after: HashMap<String, Cursor>,
    /// It was not subscribed to, but given a prompt.
    is_own: bool,
    /// The last event that was delivered of it.
    seen: u64,
}

impl SessionFollower {
    fn includes(&self, session: &SessionId<'_>) -> bool {
        self.session.as_ref().is_none_or(|it| it == session)
    }
}

impl Subscriptions {
    pub(super) async fn new(
        hub: &Hub,
        format: ClientFormat,
        interest: Interest,
    ) -> hub::Result<Self> {
        let mut followers = Vec::new();
        if interest == Interest::All {
            followers.push(attach(&format, hub, None, HashMap::new(), None).await?);
        }
        Ok(Self {
            format,
            interest,
            followers,
            tracked: HashMap::new(),
        })
    }

    /// Whether questions are shown beside the events.
    pub(super) fn shows_asks(&self) -> bool {
        self.format.bridge.is_some()
    }

    /// Whether the client wants to know what a session is about and does.
    pub(super) fn is_interested_in(&self, session: &SessionId<'_>) -> bool {
        self.interest != Interest::Own || self.followers.iter().any(|it| it.includes(session))
    }

    /// Follows a session that the client has given a prompt to, if it wants its own.
    pub(super) async fn follow_own(&mut self, hub: &Hub, prompted: &PromptedSession) -> Result<()> {
        let id = SessionId::new(prompted.session.clone());
        if self.interest != Interest::Own || self.followers.iter().any(|it| it.includes(&id)) {
            return Ok(());
        }
        if self.followers.len() >= MAX_SUBSCRIPTIONS {
            self.leave_idle(hub).await?;
        }
        let after = Cursor {
            seq: prompted.after,
            n_known: 0,
        };
        let after = HashMap::from([(prompted.session.clone(), after)]);
        let follower = attach(&self.format, hub, Some(id), after, None).await?;
        self.followers.push(SessionFollower {
            is_own: true,
            ..follower
        });
        Ok(())
    }

    /// Stops following own sessions of which everything was delivered; one that gets another prompt is
    /// followed again. Sessions at work are followed whatever their number.
    async fn leave_idle(&mut self, hub: &Hub) -> Result<()> {
        let own = self.followers.iter().filter(|it| it.is_own);
        let own: Vec<_> = own
            .filter_map(|it| Some((it.session.clone()?, it.seen)))
            .collect();
        let mut idle = Vec::new();
        for (id, seen) in own {
            match hub.find(id.as_str()).await {
                Ok(session) if session.state == State::Idle && session.head == seen => {
                    idle.push(id);
                }
                Ok(_) => (),
                // It was removed.
                Err(hub::Error::NoSession(_)) => idle.push(id),
                Err(err) => return Err(err.into()),
            }
        }
        let is_idle =
            |it: &SessionFollower| it.session.as_ref().is_some_and(|it| idle.contains(it));
        self.followers.retain(|it| !is_idle(it));
        Ok(())
    }

    /// Goes on where a follower was too slow.
    pub(super) async fn attach_again(&mut self, hub: &Hub, detached: Detached) -> hub::Result<()> {
        let cursors = detached.cursors.into_iter();
        let after: HashMap<String, Cursor> = cursors
            .map(|(id, seq)| (id.to_string(), Cursor { seq, n_known: 0 }))
            .collect();
        let is_it = |it: &SessionFollower| match &it.session {
            None => detached.since.is_some(),
            Some(id) => detached.since.is_none() && after.contains_key(id.as_str()),
        };
        let Some(at) = self.followers.iter().position(is_it) else {
            return Ok(());
        };
        let session = self.followers[at].session.clone();
        let again = attach(&self.format, hub, session, after, detached.since).await?;
        let SessionFollower { is_own, seen, .. } = self.followers[at];
        self.followers[at] = SessionFollower {
            is_own,
            seen,
            ..again
        };
        Ok(())
    }

    /// Remembers from now on which event of these sessions was delivered last.
    pub(super) fn track(&mut self, sessions: &[SessionId<'static>]) {
        let is_followed =
            |id: &&SessionId<'static>| self.followers.iter().any(|it| it.includes(id));
        let followed = sessions.iter().filter(is_followed);
        self.tracked = followed.map(|it| (it.clone(), 0)).collect();
    }

    /// Whether all of these events were delivered, of sessions that are followed.
    pub(super) fn has_delivered(&self, events: &[(SessionId<'static>, u64)]) -> bool {
        let is_delivered = |id, seq| self.tracked.get(id).is_none_or(|it| *it >= seq);
        events.iter().all(|(id, seq)| is_delivered(id, *seq))
    }

    /// What shows the questions that wait, of a session or of all, unless the event that asks is among
    /// those that are still to come.
    pub(super) fn waiting(&self, asks: &[WaitingAsk], session: Option<&str>) -> Vec<Utf8Bytes> {
        let is_past = |ask: &WaitingAsk| {
            let following = self.followers.iter().find(|it| it.includes(&ask.session));
            following.is_some_and(|it| {
                let after = it.after.get(ask.session.as_str());
                after.is_none_or(|it| ask.seq <= it.seq)
            })
        };
        let is_wanted = |ask: &WaitingAsk| session.is_none_or(|it| ask.session.as_str() == it);
        asks::waiting(asks, &self.format, |ask| is_wanted(ask) && is_past(ask))
    }

    /// Waits for something that is followed. May be dropped and called again.
    pub(super) async fn next(&mut self) -> hub::Result<Followed> {
        match &mut self.followers[..] {
            [] => std::future::pending().await,
            // The common case, without an allocation.
            [only] => only.follower.next().await,
            all => {
                let all = all.iter_mut().map(|it| Box::pin(it.follower.next()));
                select_all(all).await.0
            }
        }
    }

    /// What is there already.
    pub(super) fn ready(&mut self) -> Option<Arc<Delivered>> {
        self.followers.iter_mut().find_map(|it| it.follower.ready())
    }

    /// Follows a session, whose id is returned, or all of them.
    pub(super) async fn subscribe(
        &mut self,
        hub: &Hub,
        control: &Control,
    ) -> Result<(Value, Option<String>)> {
        let wanted = control.read()?;
        // Before following: the next `newSince` must not miss a session made in between.
        let at = Timestamp::from(SystemTime::now()).millis();
        let session = self.follow(hub, wanted).await?;
        let fields = json!({ "sessionId": session, "at": at });
        Ok((control.reply(fields), session))
    }

    /// Stops following a session, or all of them.
    pub(super) async fn unsubscribe(&mut self, hub: &Hub, control: &Control) -> Result<Value> {
        let requests::Unsubscribe { session_id } = control.read()?;
        let session = self.leave(hub, session_id.as_deref()).await?;
        Ok(control.reply(json!({ "sessionId": session })))
    }

    async fn follow(&mut self, hub: &Hub, wanted: requests::Subscribe) -> Result<Option<String>> {
        let since = wanted.since.as_ref();
        let Some(session) = wanted.session_id else {
            let after = cursors(since)?;
            let new_since = new_since(wanted.new_since.as_ref())?;
            let all = attach(&self.format, hub, None, after, new_since).await?;
            self.followers = vec![all];
            return Ok(None);
        };
        let id = hub.find(&session).await?.id;
        let after = HashMap::from([(id.to_string(), cursor(since)?)]);
        // Followed before the old subscription is dropped, so that a refused control changes nothing.
        let follower = attach(&self.format, hub, Some(id.clone()), after, None).await?;
        // Naming a session replaces the subscription to all of them.
        self.followers
            .retain(|it| it.session.is_some() && it.session.as_ref() != Some(&id));
        if self.followers.len() >= MAX_SUBSCRIPTIONS {
            let words = format!("one client follows {MAX_SUBSCRIPTIONS} sessions, or all");
            return Err(ApiError::bad(words));
        }
        self.followers.push(follower);
        Ok(Some(id.to_string()))
    }

    async fn leave(&mut self, hub: &Hub, session: Option<&str>) -> Result<Option<String>> {
        let Some(session) = session else {
            self.followers.clear();
            return Ok(None);
        };
        let id = hub.find(session).await?.id;
        self.followers.retain(|it| it.session.as_ref() != Some(&id));
        Ok(Some(id.to_string()))
    }

    /// What an event becomes for this client.
    pub(super) fn frames(&mut self, delivered: &Delivered, out: &mut Vec<Utf8Bytes>) {
        let made = delivered
            .made
            .get_or_encode(|| self.format.frames(delivered));
        // `made` is shared by all clients; only this one has some of its frames.
        out.extend(made.iter().skip(self.n_known(delivered)).cloned());
        if self.interest == Interest::Own {
            let of_it = |it: &&mut SessionFollower| it.includes(&delivered.session);
            if let Some(follower) = self.followers.iter_mut().find(of_it) {
                follower.seen = delivered.seq;
            }
        }
        if let Some(seen) = self.tracked.get_mut(&*delivered.session) {
            *seen = delivered.seq;
        }
    }

    /// How many frames of this event the client has.
    fn n_known(&self, delivered: &Delivered) -> usize {
        let cursors = self.followers.iter();
        let mut cursors = cursors.filter_map(|it| it.after.get(delivered.session.as_str()));
        let cursor = cursors.find(|it| it.seq + 1 == delivered.seq);
        cursor.map_or(0, |it| it.n_known)
    }
}

/// Follows a session, or all of them.
async fn attach(
    format: &ClientFormat,
    hub: &Hub,
    session: Option<SessionId<'static>>,
    after: HashMap<String, Cursor>,
    since: Option<Timestamp>,
) -> hub::Result<SessionFollower> {
    let scope = match &session {
        Some(id) => Scope::Session {
            id: id.clone(),
            after: after.get(id.as_str()).map_or(0, |it| it.seq),
        },
        None => Scope::All {
            after: after
                .iter()
                .map(|(id, cursor)| (SessionId::new(id.clone()), cursor.seq))
                .collect(),
            since,
        },
    };
    Ok(SessionFollower {
        session,
        follower: hub.follow(format.follow(scope)).await?,
        after,
        is_own: false,
        seen: 0,
    })
}

/// A cursor as a client sends it: a number, or a text such as `7.1`.
fn cursor(since: Option<&Value>) -> Result<Cursor> {
    let text = match since {
        None | Some(Value::Null) => return Ok(Cursor::default()),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(_) => String::new(),
    };
    text.parse()
        .map_err(|()| ApiError::bad("`since` is a cursor such as 7"))
}

/// Sessions created since then are sent from their start; in milliseconds, as in
/// `bridge.subscribed`.
fn new_since(since: Option<&Value>) -> Result<Option<Timestamp>> {
    match since {
        None | Some(Value::Null) => Ok(None),
        Some(since) => match since.as_i64() {
            Some(millis) => Ok(Some(Timestamp::from_millis(millis))),
            None => Err(ApiError::bad(
                "`newSince` is a time in milliseconds, the `at` of `bridge.subscribed`",
            )),
        },
    }
}

/// Cursors of several sessions.
fn cursors(since: Option<&Value>) -> Result<HashMap<String, Cursor>> {
    match since {
        None | Some(Value::Null) => Ok(HashMap::new()),
        Some(Value::Object(all)) => all
            .iter()
            .map(|(id, since)| Ok((id.clone(), cursor(Some(since))?)))
            .collect(),
        Some(_) => Err(ApiError::bad(
            "for all sessions `since` is an object of ids and cursors",
        )),
    }
}
