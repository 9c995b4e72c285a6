//! The bridge: events out, controls in, one JSON object each. Here is its WebSocket, `GET /ws`; a pair of
//! pipes (`crate::stdio`) carries the same, and `client` serves both.

mod asks;
pub(crate) mod client;
pub(crate) mod client_format;
pub(crate) mod controls;
mod requests;
mod submit;
pub(crate) mod subscriptions;
mod table;
pub(crate) mod verbs;

use std::sync::Arc;

use axum::Extension;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{FromRequestParts, Request, State};
use axum::response::Response;
use formats::{BridgeConfig, WriterConfig, registry};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::time::{Instant, timeout};

use self::client::{Client, CloseReason, Disconnected, Received, Transport};
use self::client_format::ClientFormat;
use self::subscriptions::Interest;
use crate::api::Params;
use crate::config::{DEAD, MAX_MESSAGE, WRITE};
use crate::error::{ApiError, Result};
use crate::metrics::Metrics;
use crate::state::App;
use crate::tokens::Caller;

pub(crate) use self::table::CONTROLS;

/// The format of a client that names none.
const DEFAULT_FORMAT: &str = "thread";
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
    /// Whether asks and the ends of runs come as messages of the bridge, too, whatever the format.
    asks: Option<bool>,
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
    let interest = match params.subscribe.as_deref() {
        None | Some("all") => Interest::All,
        Some("none") => Interest::Named,
        Some("own") => Interest::Own,
        Some(_) => return Err(ApiError::bad("`subscribe` is `all`, `own` or `none`")),
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
    // Clients of the other formats were written before there were such messages.
    let has_messages = params.asks.unwrap_or(writer.has_links);
    let format = ClientFormat {
        served: writer.has_links.then(|| app.served(output)),
        bridge: has_messages.then(|| BridgeConfig {
            base: Some(app.base.clone()),
        }),
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
        let socket = Socket {
            socket,
            last_message: Instant::now(),
        };
        let client = Client::new(app, caller, socket, format, interest, counted).await;
        if let Ok(mut client) = client {
            // How a connection ends is the client's affair.
            client.run().await.ok();
        }
    }))
}

struct Socket {
    socket: WebSocket,
    last_message: Instant,
}

impl From<axum::Error> for Disconnected {
    fn from(_: axum::Error) -> Self {
        Self
    }
}

impl Transport for Socket {
    const HAS_HEARTBEAT: bool = true;
    const IS_PATIENT: bool = false;

    async fn receive(&mut self) -> Received {
        let message = self.socket.next().await;
        self.last_message = Instant::now();
        match message {
            None | Some(Ok(Message::Close(_))) => Received::Gone,
            Some(Err(_)) => Received::Broken,
            Some(Ok(Message::Text(text))) => Received::Text(text),
            Some(Ok(Message::Binary(_))) => {
                let message = "messages are text, one JSON object each";
                Received::Unreadable(ApiError::bad(message))
            }
            // The library answers pings by itself.
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Received::Nothing,
        }
    }

    async fn write(&mut self, frames: Vec<Utf8Bytes>) -> Result<(), Disconnected> {
        self.send(frames.into_iter().map(Message::Text)).await
    }

    async fn beat(&mut self) -> Result<(), Disconnected> {
        match self.last_message.elapsed() > DEAD {
            true => Err(Disconnected),
            false => self.send([Message::Ping(Default::default())]).await,
        }
    }

    async fn close(&mut self, reason: CloseReason) {
        let (code, reason) = match reason {
            CloseReason::Unreadable => (close_code::SIZE, "the message is too long, or none"),
            CloseReason::NoJournal => (close_code::ERROR, "the journal cannot be read"),
            CloseReason::Revoked => (close_code::POLICY, "the token was revoked"),
            CloseReason::Stopping => (close_code::AWAY, "the server is stopping"),
            CloseReason::TooSlow => (close_code::AGAIN, "too slow; come back with your cursors"),
        };
        let frame = CloseFrame {
            code,
            reason: Utf8Bytes::from_static(reason),
        };
        // It is let go all the same.
        self.send([Message::Close(Some(frame))]).await.ok();
    }
}

impl Socket {
    /// Sends messages, within the time a client may take.
    async fn send(
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
}
