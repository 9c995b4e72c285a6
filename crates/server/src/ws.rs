//! `GET /ws`: events out, controls in, one JSON object per text message.
//!
//! One task per client, which waits only for its own socket: a client that reads too slowly loses
//! its position in the hub's rings and is disconnected with its cursor. Controls are worked on one
//! at a time, beside the events; the next one is read when the last one is answered.

mod asks;
mod controls;
mod requests;
mod submit;
mod subscriptions;
mod table;
mod verbs;

use std::pin::Pin;
use std::sync::Arc;

use axum::Extension;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{FromRequestParts, Request, State};
use axum::response::Response;
use formats::{WriterConfig, registry};
use futures_util::stream::{BoxStream, SelectAll, once, select_all, unfold};
use futures_util::{SinkExt, StreamExt};
use hub::{Delivered, Followed, SessionChanged};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use self::controls::{Control, SocketReply};
use self::subscriptions::{SocketFormat, Subscriptions};
use self::table::Action;
use self::verbs::Peer;
use crate::api::Params;
use crate::api::sessions::Summary;
use crate::config::{DEAD, MAX_BATCH_BYTES, MAX_MESSAGE, PING, WRITE};
use crate::error::{ApiError, Result};
use crate::metrics::{FollowerGuard, Metrics};
use crate::state::App;
use crate::tokens::Caller;

pub(crate) use self::table::CONTROLS;

/// The format of a client that names none.
const DEFAULT_FORMAT: &str = "thread";
/// Maximum frames per write, so that controls are still read in between.
const MAX_BATCH: usize = 256;
/// Bytes read at once. Controls are small, and the room for them is cleared whenever they are looked for,
/// which is with every event.
const READ_SIZE: usize = 4 << 10;

#[derive(Debug, Deserialize)]
pub(crate) struct WsParams {
    format: Option<String>,
    profile: Option<String>,
    /// How much of a tool's output is wanted in `thread`.
    output: Option<String>,
    /// `none` waits for the client to subscribe with its cursors.
    subscribe: Option<String>,
}

/// The names of the formats of the bridge.
pub(crate) fn formats() -> Vec<&'static str> {
    registry::live_formats().map(|it| it.name).collect()
}

pub(crate) async fn upgrade(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Params(params): Params<WsParams>,
    request: Request,
) -> Result<Response> {
    let format = params.format.as_deref().unwrap_or(DEFAULT_FORMAT);
    let found = registry::find_writer(format).ok();
    let Some((format, writer)) = found.filter(|it| it.1.stream_kind.is_live()) else {
        let message = format!("the formats of the bridge are {}", formats().join(", "));
        return Err(ApiError::bad(message).code("unknown_format"));
    };
    let is_subscribed = match params.subscribe.as_deref() {
        None | Some("all") => true,
        Some("none") => false,
        Some(_) => return Err(ApiError::bad("`subscribe` is `all` or `none`")),
    };
    let output = params.output.map(|it| it.parse()).transpose()?;
    let config = WriterConfig {
        profile: params.profile.clone(),
        ..WriterConfig::default()
    };
    // Refuses an unknown profile while there still is an HTTP response to do it with.
    registry::writer(format.name, &config)?;
    // Before the upgrade: a refusal is then an HTTP response that clients can read.
    let counted = Metrics::follows(&app)?;
    let (mut parts, _) = request.into_parts();
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &app).await;
    let upgrade = upgrade.map_err(|err| ApiError::bad(err.body_text()))?;
    let wire = SocketFormat {
        served: writer.has_links.then(|| app.served(output, true)),
        writer,
        format: format.name,
        profile: params.profile,
    };
    let upgrade = upgrade
        // A browser sends its token as a second protocol, and fails if none is chosen.
        .protocols(["linkspan"])
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .read_buffer_size(READ_SIZE);
    Ok(upgrade.on_upgrade(async move |socket| {
        let Ok(subscriptions) = Subscriptions::new(&app.hub, wire, is_subscribed).await else {
            return;
        };
        let client = Client {
            subscriptions,
            control_events: seldom(&app),
            peer: Peer {
                caller,
                socket: app.repeats.number_socket(),
                last: None,
            },
            app,
            socket,
            busy: None,
            last_message: Instant::now(),
            _counted: counted,
        };
        client.run(is_subscribed).await;
    }))
}

type Busy = Pin<Box<dyn Future<Output = SocketReply> + Send>>;

/// A client of a socket.
struct Client {
    app: Arc<App>,
    peer: Peer,
    socket: WebSocket,
    subscriptions: Subscriptions,
    control_events: SelectAll<BoxStream<'static, Wakeup>>,
    /// The control that is being worked on.
    busy: Option<Busy>,
    last_message: Instant,
    _counted: FollowerGuard,
}

enum Wakeup {
    Received(Option<Result<Message, axum::Error>>),
    Reply(SocketReply),
    Followed(hub::Result<Followed>),
    Changed(Option<Arc<SessionChanged>>),
    Heartbeat,
    Revoked,
    Stop,
}

/// Why a client is disconnected.
struct Disconnected;

impl From<axum::Error> for Disconnected {
    fn from(_: axum::Error) -> Self {
        Self
    }
}

impl Client {
    async fn run(mut self, is_subscribed: bool) {
        // The events begin with the present: asks that were opened before would never be seen.
        if is_subscribed && self.show_waiting(None).await.is_err() {
            return;
        }
        loop {
            let woken = tokio::select! {
                // In this order: a session is announced before its events.
                biased;
                Some(woken) = self.control_events.next() => woken,
                reply = next(&mut self.busy), if self.busy.is_some() => Wakeup::Reply(reply),
                message = self.socket.next(), if self.busy.is_none() => {
                    Wakeup::Received(message)
                }
                followed = self.subscriptions.next() => Wakeup::Followed(followed),
            };
            if self.next_wakeup(woken).await.is_err() {
                return;
            }
        }
    }

    async fn next_wakeup(&mut self, woken: Wakeup) -> Result<(), Disconnected> {
        match woken {
            Wakeup::Received(None) => Err(Disconnected),
            Wakeup::Received(Some(Ok(message))) => self.on_received(message).await,
            Wakeup::Received(Some(Err(_))) => {
                self.close(close_code::SIZE, "the message is too long, or none")
                    .await
            }
            Wakeup::Reply(reply) => self.on_reply(reply).await,
            Wakeup::Followed(Ok(followed)) => self.on_followed(followed).await,
            Wakeup::Followed(Err(err)) => {
                let err = ApiError::from(err);
                self.send(&controls::failed(None, None, &err)).await?;
                self.close(close_code::ERROR, "the journal cannot be read")
                    .await
            }
            Wakeup::Changed(Some(change)) => self.on_changed(&change).await,
            // Changes were missed, so the client has to read the list again.
            Wakeup::Changed(None) => {
                self.send(&json!({ "type": "bridge.sessions_changed" }))
                    .await
            }
            Wakeup::Heartbeat if self.last_message.elapsed() > DEAD => Err(Disconnected),
            Wakeup::Heartbeat => self.write([Message::Ping(Default::default())]).await,
            Wakeup::Revoked if self.app.knows(&self.peer.caller) => Ok(()),
            Wakeup::Revoked => {
                self.close(close_code::POLICY, "the token was revoked")
                    .await
            }
            Wakeup::Stop => self.close(close_code::AWAY, "the server is stopping").await,
        }
    }

    async fn on_received(&mut self, message: Message) -> Result<(), Disconnected> {
        self.last_message = Instant::now();
        match message {
            Message::Text(text) => {
                let control = controls::read(&text);
                self.control(control).await
            }
            Message::Binary(_) => {
                let err = ApiError::bad("messages are text, one JSON object each");
                self.send(&controls::failed(None, None, &err)).await
            }
            // The library answers pings by itself.
            Message::Ping(_) | Message::Pong(_) => Ok(()),
            Message::Close(_) => Err(Disconnected),
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
        match self.app.hub.journal().asks().await {
            Ok(asks) => {
                let messages = self.subscriptions.waiting(&asks, session);
                self.write(messages.into_iter().map(Message::Text)).await
            }
            Err(err) => self.send(&controls::failed(None, None, &err.into())).await,
        }
    }

    async fn on_reply(&mut self, reply: SocketReply) -> Result<(), Disconnected> {
        // A later `run.abort` without a session means this one.
        if reply.session.is_some() {
            self.peer.last = reply.session;
        }
        self.send(&reply.reply).await
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
                for (session, cursor) in &detached.cursors {
                    let reply = json!({
                        "type": "bridge.detached", "sessionId": session.as_str(),
                        "cursor": cursor, "reason": "slow",
                    });
                    self.send(&reply).await?;
                }
                self.close(close_code::AGAIN, "too slow; come back with your cursors")
                    .await
            }
            Followed::Removed(session) => {
                self.subscriptions.forget(&session);
                let session = session.as_str();
                let reply = json!({ "type": "bridge.session_removed", "sessionId": session });
                self.send(&reply).await
            }
        }
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
        self.write(frames.into_iter().map(Message::Text)).await
    }

    async fn on_changed(&mut self, change: &SessionChanged) -> Result<(), Disconnected> {
        // Encoded once for all sockets.
        let made = change.made.get_or_encode(|| {
            let session = Summary::new(change.session.clone());
            let reply = json!({ "type": "bridge.session", "session": session });
            Box::new([reply.to_string().into()])
        });
        self.write(made.iter().cloned().map(Message::Text)).await
    }

    async fn send(&mut self, reply: &Value) -> Result<(), Disconnected> {
        let text: Utf8Bytes = reply.to_string().into();
        self.write([Message::Text(text)]).await
    }

    /// Writes messages, within the time a client may take.
    async fn write(
        &mut self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<(), Disconnected> {
        let write = async {
            for message in messages {
                // `feed` and one flush: `send` would flush after each message.
                self.socket.feed(message).await?;
            }
            self.socket.flush().await
        };
        timeout(WRITE, write).await.map_err(|_| Disconnected)??;
        Ok(())
    }

    async fn close(&mut self, code: u16, reason: &'static str) -> Result<(), Disconnected> {
        let frame = CloseFrame {
            code,
            reason: Utf8Bytes::from_static(reason),
        };
        self.write([Message::Close(Some(frame))]).await?;
        Err(Disconnected)
    }
}

/// Low-frequency events: polled separately, not with every event.
fn seldom(app: &Arc<App>) -> SelectAll<BoxStream<'static, Wakeup>> {
    let changes = unfold(app.hub.changes(), async |mut changes| {
        Some((Wakeup::Changed(changes.next().await), changes))
    });
    let mut beats = interval(PING);
    // A client that was blocked in a write must not get a burst of pings.
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let beats = unfold(beats, async |mut beats| {
        beats.tick().await;
        Some((Wakeup::Heartbeat, beats))
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
    select_all([
        changes.boxed(),
        beats.boxed(),
        revoked.boxed(),
        stop.boxed(),
    ])
}

async fn next(busy: &mut Option<Busy>) -> SocketReply {
    let reply = match busy {
        Some(busy) => busy.await,
        None => std::future::pending().await,
    };
    *busy = None;
    reply
}
