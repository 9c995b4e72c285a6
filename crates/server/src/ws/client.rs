//! A client of the bridge, whatever carries its messages.
//!
//! One task per client, which waits for nobody else. Controls are worked on one at a time, beside the
//! events; the next one is read when the last one is answered.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::Utf8Bytes;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, SelectAll, once, select_all, unfold};
use hub::{Delivered, Detached, Followed, SessionChanged};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::client_format::ClientFormat;
use super::controls::{self, Control, ControlReply};
use super::subscriptions::{Interest, Subscriptions};
use super::table::Action;
use super::verbs::{self, Peer};
use crate::api::sessions::Summary;
use crate::config::{MAX_BATCH_BYTES, PING};
use crate::error::{ApiError, Result};
use crate::metrics::FollowerGuard;
use crate::state::App;
use crate::tokens::Caller;

/// Maximum frames per write, so that controls are still read in between.
const MAX_BATCH: usize = 256;
/// How long the events of the last moment may take.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(2);

/// What carries the messages of one client.
pub(crate) trait Transport: Send {
    /// Whether pings are needed to detect a dead connection.
    const HAS_HEARTBEAT: bool;
    /// Whether a client that reads slowly is waited for. It then reads from the log what it has missed; any
    /// other is let go with its cursors.
    const IS_PATIENT: bool;

    /// The next message. May be dropped and called again: nothing is lost.
    fn receive(&mut self) -> impl Future<Output = Received> + Send;
    /// Writes frames, all of them in one go.
    fn write(
        &mut self,
        frames: Vec<Utf8Bytes>,
    ) -> impl Future<Output = Result<(), Disconnected>> + Send;
    fn beat(&mut self) -> impl Future<Output = Result<(), Disconnected>> + Send;
    fn close(&mut self, reason: CloseReason) -> impl Future<Output = ()> + Send;
}

/// What comes from a client.
#[derive(Debug)]
pub(crate) enum Received {
    Text(Utf8Bytes),
    /// Not a message that could be read.
    Unreadable(ApiError),
    /// A sign of life.
    Nothing,
    /// Nothing more can be read.
    Broken,
    /// No more controls will come.
    End,
    Gone,
}

/// The client can no longer be reached.
#[derive(Debug)]
pub(crate) struct Disconnected;

/// Why the server lets a client go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    Unreadable,
    NoJournal,
    Revoked,
    Stopping,
    TooSlow,
}

type Busy = Pin<Box<dyn Future<Output = ControlReply> + Send>>;

pub(crate) struct Client<T> {
    app: Arc<App>,
    peer: Peer,
    transport: T,
    subscriptions: Subscriptions,
    control_events: SelectAll<BoxStream<'static, Wakeup>>,
    /// The control that is being worked on.
    busy: Option<Busy>,
    _counted: FollowerGuard,
}

enum Wakeup {
    Received(Received),
    Reply(ControlReply),
    Followed(hub::Result<Followed>),
    Changed(Option<Arc<SessionChanged>>),
    Heartbeat,
    Revoked,
    Stop,
}

impl<T: Transport> Client<T> {
    pub(crate) async fn new(
        app: Arc<App>,
        caller: Caller,
        transport: T,
        format: ClientFormat,
        interest: Interest,
        counted: FollowerGuard,
    ) -> hub::Result<Self> {
        Ok(Self {
            subscriptions: Subscriptions::new(&app.hub, format, interest).await?,
            control_events: seldom(&app, T::HAS_HEARTBEAT),
            peer: Peer {
                caller,
                connection: app.repeats.number_connection(),
                last: None,
            },
            app,
            transport,
            busy: None,
            _counted: counted,
        })
    }

    /// Serves the client until it sends no more.
    pub(crate) async fn run(&mut self) -> Result<(), Disconnected> {
        // The events begin with the present: asks that were opened before would never be seen.
        self.show_waiting(None).await?;
        loop {
            let wakeup = tokio::select! {
                // In this order: a session is announced before its events.
                biased;
                Some(wakeup) = self.control_events.next() => wakeup,
                reply = next(&mut self.busy), if self.busy.is_some() => Wakeup::Reply(reply),
                received = self.transport.receive(), if self.busy.is_none() => {
                    Wakeup::Received(received)
                }
                followed = self.subscriptions.next() => Wakeup::Followed(followed),
            };
            if let Wakeup::Received(Received::End) = wakeup {
                return Ok(());
            }
            self.next_wakeup(wakeup).await?;
        }
    }

    /// Delivers what the end of the client's runs leads to, which `stop` brings about.
    pub(crate) async fn run_until_stopped(
        &mut self,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Disconnected> {
        let at_work = self.app.hub.at_work();
        self.subscriptions.track(&at_work);
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                followed = self.subscriptions.next() => {
                    self.next_wakeup(Wakeup::Followed(followed)).await?;
                }
            }
        }
        let mut ends = Vec::new();
        for session in at_work {
            let found = self.app.hub.overview(session.as_str(), 1).await.ok();
            let run = found.and_then(|it| it.runs.into_iter().next());
            ends.extend(run.and_then(|it| Some((session, it.end?.seq))));
        }
        let rest = async {
            while !self.subscriptions.has_delivered(&ends) {
                let followed = self.subscriptions.next().await;
                self.next_wakeup(Wakeup::Followed(followed)).await?;
            }
            Ok(())
        };
        timeout(LAST_WORDS, rest).await.unwrap_or(Ok(()))
    }

    async fn next_wakeup(&mut self, wakeup: Wakeup) -> Result<(), Disconnected> {
        match wakeup {
            Wakeup::Received(received) => self.on_received(received).await,
            Wakeup::Reply(reply) => self.on_reply(reply).await,
            Wakeup::Followed(Ok(followed)) => self.on_followed(followed).await,
            Wakeup::Followed(Err(err)) => {
                let err = ApiError::from(err);
                self.send(&controls::failed(None, None, &err)).await?;
                self.close(CloseReason::NoJournal).await
            }
            Wakeup::Changed(Some(change)) => self.on_changed(&change).await,
            // Changes were missed, so the client has to read the list again.
            Wakeup::Changed(None) => {
                self.send(&json!({ "type": "bridge.sessions_changed" }))
                    .await
            }
            Wakeup::Heartbeat => self.transport.beat().await,
            Wakeup::Revoked if self.app.knows(&self.peer.caller) => Ok(()),
            Wakeup::Revoked => self.close(CloseReason::Revoked).await,
            Wakeup::Stop => self.close(CloseReason::Stopping).await,
        }
    }

    async fn on_received(&mut self, received: Received) -> Result<(), Disconnected> {
        match received {
            Received::Text(text) => self.control(controls::read(&text)).await,
            Received::Unreadable(err) => self.send(&controls::failed(None, None, &err)).await,
            Received::Nothing => Ok(()),
            Received::Broken => self.close(CloseReason::Unreadable).await,
            Received::End | Received::Gone => Err(Disconnected),
        }
    }

    async fn control(&mut self, control: Result<Control, Value>) -> Result<(), Disconnected> {
        let control = match control {
            Ok(control) => control,
            Err(refusal) => return self.send(&refusal).await,
        };
        if let Err(err) = verbs::check(&self.app, &self.peer.caller, &control) {
            return self.send(&control.failed(&err)).await;
        }
        let hub = &self.app.hub;
        match control.verb.action {
            Action::Subscribe => match self.subscriptions.subscribe(hub, &control).await {
                Ok((reply, session)) => {
                    self.send(&reply).await?;
                    self.show_waiting(session.as_deref()).await
                }
                Err(err) => self.send(&control.failed(&err)).await,
            },
            Action::Unsubscribe => {
                let done = self.subscriptions.unsubscribe(hub, &control).await;
                let reply = done.unwrap_or_else(|err| control.failed(&err));
                self.send(&reply).await
            }
            Action::Work(work) => {
                let (app, peer) = (Arc::clone(&self.app), self.peer.clone());
                self.busy = Some(Box::pin(verbs::run_control(app, peer, work, control)));
                Ok(())
            }
        }
    }

    /// Shows the questions that wait, of a session or of all, as far as they are not among the events
    /// that are still to come.
    async fn show_waiting(&mut self, session: Option<&str>) -> Result<(), Disconnected> {
        if !self.subscriptions.shows_asks() {
            return Ok(());
        }
        match self.app.hub.journal().asks(None).await {
            Ok(asks) => {
                let messages = self.subscriptions.waiting(&asks, session);
                self.transport.write(messages).await
            }
            Err(err) => self.send(&controls::failed(None, None, &err.into())).await,
        }
    }

    async fn on_reply(&mut self, reply: ControlReply) -> Result<(), Disconnected> {
        self.send(&reply.reply).await?;
        let Some(prompted) = reply.prompted else {
            return Ok(());
        };
        // After the reply, which names the session of these events.
        let followed = self
            .subscriptions
            .follow_own(&self.app.hub, &prompted)
            .await;
        // A later `run.abort` without a session means this one.
        self.peer.last = Some(prompted.session);
        match followed {
            Ok(()) => Ok(()),
            Err(err) => self.send(&controls::failed(None, None, &err)).await,
        }
    }

    async fn on_followed(&mut self, followed: Followed) -> Result<(), Disconnected> {
        match followed {
            Followed::Delivered(first) => self.deliver(first).await,
            Followed::CaughtUp { session, cursor } => {
                let session = session.as_str();
                let reply =
                    json!({ "type": "bridge.caught_up", "sessionId": session, "cursor": cursor });
                self.send(&reply).await
            }
            Followed::Detached(detached) => {
                self.app.metrics.detached();
                self.on_detached(detached).await
            }
            Followed::Removed(session) => {
                self.subscriptions.forget(&session);
                let session = session.as_str();
                let reply = json!({ "type": "bridge.session_removed", "sessionId": session });
                self.send(&reply).await
            }
        }
    }

    async fn on_detached(&mut self, detached: Detached) -> Result<(), Disconnected> {
        if T::IS_PATIENT {
            let attached = self.subscriptions.attach_again(&self.app.hub, detached);
            return match attached.await {
                Ok(()) => Ok(()),
                Err(err) => self.send(&controls::failed(None, None, &err.into())).await,
            };
        }
        for (session, cursor) in &detached.cursors {
            let reply = json!({
                "type": "bridge.detached", "sessionId": session.as_str(),
                "cursor": cursor, "reason": "slow",
            });
            self.send(&reply).await?;
        }
        self.close(CloseReason::TooSlow).await
    }

    /// Sends an event and all that are ready behind it.
    async fn deliver(&mut self, first: Arc<Delivered>) -> Result<(), Disconnected> {
        let mut frames = Vec::new();
        let (mut n_events, mut n_bytes) = (0, 0);
        let mut next = Some(first);
        while let Some(delivered) = next {
            n_events += 1;
            n_bytes += delivered.bytes.len();
            self.subscriptions.frames(&delivered, &mut frames);
            next = match frames.len() < MAX_BATCH && n_bytes < MAX_BATCH_BYTES {
                true => self.subscriptions.ready(),
                false => None,
            };
        }
        self.app.metrics.delivered(n_events, n_bytes);
        self.transport.write(frames).await
    }

    async fn on_changed(&mut self, change: &SessionChanged) -> Result<(), Disconnected> {
        if !self.subscriptions.is_interested_in(&change.session.id) {
            return Ok(());
        }
        // Encoded once for all clients.
        let made = change.made.get_or_encode(|| {
            let session = Summary::new(change.session.clone());
            let reply = json!({ "type": "bridge.session", "session": session });
            Box::new([reply.to_string().into()])
        });
        self.transport.write(made.to_vec()).await
    }

    pub(crate) async fn send(&mut self, reply: &Value) -> Result<(), Disconnected> {
        self.transport.write(vec![reply.to_string().into()]).await
    }

    async fn close(&mut self, reason: CloseReason) -> Result<(), Disconnected> {
        self.transport.close(reason).await;
        Err(Disconnected)
    }
}

/// Low-frequency events: polled separately, not with every event.
fn seldom(app: &Arc<App>, has_heartbeat: bool) -> SelectAll<BoxStream<'static, Wakeup>> {
    let changes = unfold(app.hub.changes(), async |mut changes| {
        Some((Wakeup::Changed(changes.next().await), changes))
    });
    let revoked = unfold(app.revoked.subscribe(), async |mut revoked| {
        revoked.changed().await.ok()?;
        Some((Wakeup::Revoked, revoked))
    });
    let mut stop = app.stop.subscribe();
    let stop = once(async move {
        // An error means that the server has stopped.
        stop.wait_for(|it| *it).await.ok();
        Wakeup::Stop
    });
    let mut all = select_all([changes.boxed(), revoked.boxed(), stop.boxed()]);
    if has_heartbeat {
        let mut beats = interval(PING);
        // A client that was blocked in a write must not get a burst of pings.
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let beats = unfold(beats, async |mut beats| {
            beats.tick().await;
            Some((Wakeup::Heartbeat, beats))
        });
        all.push(beats.boxed());
    }
    all
}

async fn next(busy: &mut Option<Busy>) -> ControlReply {
    let reply = match busy {
        Some(busy) => busy.await,
        None => std::future::pending().await,
    };
    *busy = None;
    reply
}
