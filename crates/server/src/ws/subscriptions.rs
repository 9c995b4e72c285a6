//! Subscriptions of a client, and the encoding of its events.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::ws::Utf8Bytes;
use formats::ServedThread;
use formats::registry::{self, WriterInfo};
use futures_util::future::select_all;
use hub::{Cursor, Delivered, Follow, Followed, Follower, Hub, Scope};
use journal::WaitingAsk;
use model::{SessionId, Timestamp};
use serde_json::{Value, json};

use super::controls::Control;
use super::{asks, requests};
use crate::config::MAX_SUBSCRIPTIONS;
use crate::error::{ApiError, Result};

/// What the bridge puts around a frame; with a longer id the text grows.
const MAX_AROUND: usize = 160;

/// The format of a socket.
#[derive(Clone, Debug)]
pub(super) struct SocketFormat {
    pub(super) format: &'static str,
    pub(super) writer: &'static WriterInfo,
    pub(super) profile: Option<String>,
    /// Only for a format with links.
    pub(super) served: Option<ServedThread>,
}

impl SocketFormat {
    async fn follow(
        &self,
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
        let follow = Follow {
            scope,
            format: self.format.to_owned(),
            profile: self.profile.clone(),
            served: self.served.clone(),
        };
        Ok(SessionFollower {
            session,
            follower: hub.follow(follow).await?,
            after,
        })
    }

    /// What an event becomes, with what the bridge puts around it.
    fn frames(&self, delivered: &Delivered) -> Box<[Utf8Bytes]> {
        if self.format == registry::CANONICAL {
            // Sent as stored, without a copy.
            let line = delivered.bytes.slice(..delivered.bytes.len() - 1);
            return Utf8Bytes::try_from(line).into_iter().collect();
        }
        let frames = self.writer.stream_kind.frames(&delivered.bytes);
        let session = delivered.session.as_str();
        let made = frames.iter().enumerate().map(|(n, frame)| {
            let cursor = Cursor::behind(delivered.seq, n + 1, frames.len());
            let frame = String::from_utf8_lossy(frame);
            self.frame(session, cursor, &frame).into()
        });
        made.collect()
    }

    fn frame(&self, session: &str, cursor: Cursor, frame: &str) -> String {
        // Its own fields stay as they are, whatever they hold.
        let fields = frame
            .strip_prefix('{')
            .filter(|it| self.writer.has_links && *it != "}");
        let (begin, data, end) = match fields {
            Some(fields) => ("", ",", fields),
            None => (r#""type":"bridge.event","#, r#","data":"#, frame),
        };
        let session = Value::from(session);
        // There is room for all of it from the beginning.
        let mut text = String::with_capacity(frame.len() + MAX_AROUND);
        // `7.10` as a JSON number would be `7.1`.
        let quote = if cursor.n_known == 0 { "" } else { "\"" };
        // Writing to a string does not fail.
        write!(
            text,
            r#"{{{begin}"sessionId":{session},"cursor":{quote}{cursor}{quote}{data}{end}"#
        )
        .ok();
        if fields.is_none() {
            text.push('}');
        }
        text
    }
}

/// Everything, or some sessions one by one.
#[derive(Debug)]
pub(super) struct Subscriptions {
    wire: SocketFormat,
    followers: Vec<SessionFollower>,
}

#[derive(Debug)]
struct SessionFollower {
    /// None is all of them.
    session: Option<SessionId<'static>>,
    follower: Follower,
    /// Where the client was; it may know some frames of the next event.
    after: HashMap<String, Cursor>,
}

impl Subscriptions {
    /// All sessions, as clients of the bridge expect it; or nothing, until the client says what it has.
    pub(super) async fn new(
        hub: &Hub,
        wire: SocketFormat,
        is_subscribed: bool,
    ) -> hub::Result<Self> {
        let mut followers = Vec::new();
        if is_subscribed {
            followers.push(wire.follow(hub, None, HashMap::new(), None).await?);
        }
        Ok(Self { wire, followers })
    }

    /// Whether questions are shown beside the events.
    pub(super) fn shows_asks(&self) -> bool {
        self.wire.served.is_some()
    }

    /// What shows the questions that wait, of a session or of all, unless the event that asks is among
    /// those that are still to come.
    pub(super) fn waiting(&self, asks: &[WaitingAsk], session: Option<&str>) -> Vec<Utf8Bytes> {
        let Some(served) = &self.wire.served else {
            return Vec::new();
        };
        let is_past = |ask: &WaitingAsk| {
            let is_of =
                |it: &&SessionFollower| it.session.as_ref().is_none_or(|it| *it == ask.session);
            let following = self.followers.iter().find(is_of);
            following.is_some_and(|it| {
                let after = it.after.get(ask.session.as_str());
                after.is_none_or(|it| ask.seq <= it.seq)
            })
        };
        let is_wanted = |ask: &WaitingAsk| session.is_none_or(|it| ask.session.as_str() == it);
        asks::waiting(asks, served, |ask| is_wanted(ask) && is_past(ask))
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
            let all = self.wire.follow(hub, None, after, new_since).await?;
            self.followers = vec![all];
            return Ok(None);
        };
        let id = hub.find(&session).await?.id;
        let after = HashMap::from([(id.to_string(), cursor(since)?)]);
        // Followed before the old subscription is dropped, so that a refused control changes nothing.
        let follower = self.wire.follow(hub, Some(id.clone()), after, None).await?;
        // Naming a session replaces the subscription to all of them.
        self.followers
            .retain(|it| it.session.is_some() && it.session.as_ref() != Some(&id));
        if self.followers.len() >= MAX_SUBSCRIPTIONS {
            let words = format!("one socket follows {MAX_SUBSCRIPTIONS} sessions, or all");
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

    /// The session was removed.
    pub(super) fn forget(&mut self, session: &SessionId<'_>) {
        self.followers
            .retain(|it| it.session.as_ref() != Some(session));
    }

    /// What an event becomes on this wire.
    pub(super) fn frames(&self, delivered: &Delivered, out: &mut Vec<Utf8Bytes>) {
        let made = delivered.made.get_or_encode(|| self.wire.frames(delivered));
        // `made` is shared by all sockets; only this client has some of its frames.
        out.extend(made.iter().skip(self.n_known(delivered)).cloned());
    }

    /// How many frames of this event the client has.
    fn n_known(&self, delivered: &Delivered) -> usize {
        let cursors = self.followers.iter();
        let mut cursors = cursors.filter_map(|it| it.after.get(delivered.session.as_str()));
        let cursor = cursors.find(|it| it.seq + 1 == delivered.seq);
        cursor.map_or(0, |it| it.n_known)
    }
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
