//! The bridge on a pair of pipes, for the program that started this one: JSON lines both ways, the same
//! controls and messages as over `/ws`.
//!
//! The client is the user, so no token is asked for. It follows the sessions that it gives prompts to, and
//! a client that reads slowly is waited for: what it has missed meanwhile is read from the journal.

use std::collections::VecDeque;
use std::fmt;
use std::io::{Read, Write};
use std::pin::Pin;
use std::process;
use std::sync::Arc;

use axum::extract::ws::Utf8Bytes;
use formats::{BridgeConfig, WriterConfig, registry};
use hub::{Hub, HubConfig};
use runner::pipes::{self, LineSender, PipeLine};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::bridge::Bridge;
use crate::config::{Error, MAX_BODY};
use crate::error::ApiError;
use crate::host_origin::HostNames;
use crate::metrics::Metrics;
use crate::roots::Roots;
use crate::state::{App, AppConfig};
use crate::tokens::Caller;
use crate::ws::client::{Client, CloseReason, Disconnected, LAST_WORDS, Received, Transport};
use crate::ws::client_format::ClientFormat;
use crate::ws::subscriptions::Interest;

/// The version of this protocol. A client that does not know it must report that.
const PROTOCOL: u32 = 1;
/// Controls that are read while the client does not take what is written.
const MAX_WAITING: usize = 16;

pub struct StdioConfig {
    pub hub: HubConfig,
    /// A format that can be followed live, such as `thread`.
    pub format: String,
    pub profile: Option<String>,
    /// The version of the program.
    pub version: &'static str,
}

impl fmt::Debug for StdioConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioConfig")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

/// Serves one client until it closes its end of `input`, or until `stop`; then ends all of its runs.
pub async fn serve_stdio(
    config: StdioConfig,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let format = client_format(&config)?;
    let settings = config.hub.settings.clone();
    let app = App::new(AppConfig {
        hub: Hub::open(config.hub).await?,
        settings,
        keys: None,
        origins: HostNames::none(),
        roots: Roots::new(&[])?,
        own: Vec::new(),
        bridge: Bridge::temporary(),
        base: String::new(),
        bind: "stdio".to_owned(),
        max_clients: 1,
    });
    let pipes = pipes::open(input, output, |_, _| ());
    let counted = Metrics::follows(&app).expect("the first client is not one too many");
    let transport = Pipes {
        inbound: pipes.inbound,
        outbound: pipes.outbound,
        waiting: VecDeque::new(),
        stop: Box::pin(stop),
        is_ended: false,
    };
    let user = Caller::user();
    let client = Client::new(
        Arc::clone(&app),
        user,
        transport,
        format,
        Interest::Own,
        counted,
    );
    let mut client = client.await?;
    let ready = json!({
        "type": "bridge.ready", "version": config.version, "protocol": PROTOCOL,
        "pid": process::id(),
    });
    let served = match client.send(&ready).await {
        Ok(()) => client.run().await,
        Err(gone) => Err(gone),
    };
    // A task of its own: agents end whether or not the client reads what they lead to.
    let hub = Arc::clone(&app.hub);
    let mut stopping = tokio::spawn(async move { hub.stop().await });
    if served.is_ok() {
        let stopped = async {
            (&mut stopping).await.ok();
        };
        // A client that is gone gets no more.
        client.run_until_stopped(stopped).await.ok();
    }
    if !stopping.is_finished() {
        stopping.await.ok();
    }
    // With it the sender of the last lines.
    drop(client);
    timeout(LAST_WORDS, pipes.written).await.ok();
    Ok(())
}

fn client_format(config: &StdioConfig) -> hub::Result<ClientFormat> {
    let profile = WriterConfig {
        profile: config.profile.clone(),
        ..WriterConfig::default()
    };
    registry::writer(&config.format, &profile).map_err(hub::Error::Format)?;
    let (format, writer) = registry::find_writer(&config.format).map_err(hub::Error::Format)?;
    Ok(ClientFormat {
        format: format.name,
        writer,
        profile: config.profile.clone(),
        // There is no server that links could lead to.
        served: None,
        bridge: Some(BridgeConfig { base: None }),
    })
}

struct Pipes {
    inbound: mpsc::Receiver<PipeLine>,
    outbound: LineSender,
    /// What was read while a write waited.
    waiting: VecDeque<PipeLine>,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// No more controls come.
    is_ended: bool,
}

impl Transport for Pipes {
    const HAS_HEARTBEAT: bool = false;
    const IS_PATIENT: bool = true;

    async fn receive(&mut self) -> Received {
        if let Some(line) = self.waiting.pop_front() {
            return received(line);
        }
        if self.is_ended {
            return Received::End;
        }
        tokio::select! {
            // In this order: a client that is gone has also closed its input.
            biased;
            () = self.outbound.closed() => Received::Gone,
            () = &mut self.stop => self.end(),
            line = self.inbound.recv() => match line {
                Some(line) => received(line),
                None => self.end(),
            },
        }
    }

    async fn write(&mut self, frames: Vec<Utf8Bytes>) -> Result<(), Disconnected> {
        let mut lines = Vec::with_capacity(frames.iter().map(|it| it.len() + 1).sum());
        for frame in frames {
            lines.extend_from_slice(frame.as_bytes());
            lines.push(b'\n');
        }
        // U+2028 and the like end a line for some readers of JSON lines.
        model::escape_line_breaks(&mut lines, 0);
        let outbound = self.outbound.clone();
        let mut sent = std::pin::pin!(outbound.send(lines));
        // The client may end while it does not read.
        while !self.is_ended {
            tokio::select! {
                biased;
                () = &mut sent => return Ok(()),
                () = outbound.closed() => return Err(Disconnected),
                () = &mut self.stop => {
                    self.waiting.clear();
                    self.is_ended = true;
                }
                line = self.inbound.recv(), if self.waiting.len() < MAX_WAITING => match line {
                    Some(line) => self.waiting.push_back(line),
                    None => self.is_ended = true,
                },
            }
        }
        timeout(LAST_WORDS, sent).await.map_err(|_| Disconnected)
    }

    async fn beat(&mut self) -> Result<(), Disconnected> {
        Ok(())
    }

    async fn close(&mut self, _: CloseReason) {}
}

impl Pipes {
    fn end(&mut self) -> Received {
        self.is_ended = true;
        Received::End
    }
}

fn received(line: PipeLine) -> Received {
    let too_long = |n_bytes: u64| {
        let message = format!("the message has {n_bytes} bytes; {MAX_BODY} are read");
        Received::Unreadable(ApiError::too_large("too_long", message))
    };
    match line {
        PipeLine::TooLong(n_bytes) => too_long(n_bytes),
        PipeLine::Line(line) if line.len() > MAX_BODY => too_long(line.len() as u64),
        // Pressing return in a terminal asks for nothing.
        PipeLine::Line(line) if line.trim_ascii().is_empty() => Received::Nothing,
        PipeLine::Line(line) => match String::from_utf8(line) {
            Ok(text) => Received::Text(text.into()),
            Err(_) => {
                let err = ApiError::bad("a message is JSON: it is not UTF-8");
                Received::Unreadable(err.code("bad_message"))
            }
        },
    }
}
