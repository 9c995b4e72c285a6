//! A session's events by cursor: what is stored as lines, or what is stored and what happens as SSE.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use formats::registry::StreamKind;
use formats::{WriterConfig, registry};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::unfold;
use hub::{Cursor, Delivered, Export, Follow, Followed, Follower, Scope};
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use super::{Params, live_response};
use crate::config::MAX_BATCH_BYTES;
use crate::error::{ApiError, Result};
use crate::metrics::{FollowerGuard, Metrics};
use crate::state::App;
use crate::tokens::Caller;

const EVENT_STREAM: &str = "text/event-stream";

/// A comment is sent after this much silence, so that proxies do not close the connection as idle.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize)]
pub(crate) struct EventParams {
    after: Option<String>,
    limit: Option<u64>,
    format: Option<String>,
    profile: Option<String>,
    output: Option<String>,
}

pub(crate) async fn read(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Params(params): Params<EventParams>,
) -> Result<Response> {
    let session = app.hub.find(&id).await?;
    let format = params.format.as_deref().unwrap_or(registry::CANONICAL);
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|it| it.to_str().ok());
    let is_live = accepted.any(|it| it.contains(EVENT_STREAM));
    // A browser that reconnects sends its last id; the cursor in the URL is older.
    let last = headers.get("last-event-id").filter(|_| is_live);
    let last = last.and_then(|it| it.to_str().ok());
    let after = match last.or(params.after.as_deref()) {
        None | Some("") => Cursor::default(),
        Some(text) => text
            .parse()
            .map_err(|()| ApiError::bad("a cursor is a number such as 7, or `7.1`"))?,
    };
    let output = params.output.map(|it| it.parse()).transpose()?;
    let (format, writer) = registry::find_writer(format)?;
    let served = writer.has_links.then(|| app.served(output));
    if is_live {
        let follow = Follow {
            scope: Scope::Session {
                id: session.id,
                after: after.seq,
            },
            format: format.name.to_owned(),
            profile: params.profile,
            served,
            bridge: None,
        };
        return live(app, caller, writer.stream_kind, follow, after).await;
    }
    let config = WriterConfig {
        profile: params.profile,
        live: true,
        served,
        ..WriterConfig::default()
    };
    let journal = Arc::clone(app.hub.journal());
    let export = Export::new(journal, &session, format.name, &config, after, params.limit)?;
    Ok(stored(writer.stream_kind, export))
}

fn stored(stream_kind: StreamKind, export: Export) -> Response {
    let pieces = unfold(Some(export), async |export| {
        let mut export = export?;
        match export.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(export))),
            Ok(None) => None,
            // The connection is cut: a list that ends early must not look whole.
            Err(err) => Some((Err(io::Error::other(err)), None)),
        }
    });
    let headers = [(header::CONTENT_TYPE, stream_kind.media_type())];
    (headers, Body::from_stream(pieces)).into_response()
}

/// A client that follows over SSE.
struct LiveEvents {
    app: Arc<App>,
    stream_kind: StreamKind,
    follower: Follower,
    after: Cursor,
    no_longer_served: BoxFuture<'static, &'static str>,
    /// The last event was sent.
    is_over: bool,
    _counted: FollowerGuard,
}

async fn live(
    app: Arc<App>,
    caller: Caller,
    stream_kind: StreamKind,
    follow: Follow,
    after: Cursor,
) -> Result<Response> {
    let live = LiveEvents {
        stream_kind,
        follower: app.hub.follow(follow).await?,
        after,
        no_longer_served: Arc::clone(&app).no_longer_served(caller).boxed(),
        is_over: false,
        _counted: Metrics::follows(&app)?,
        app,
    };
    let pieces = unfold(live, async |mut live| Some((live.next().await?, live)));
    Ok(live_response(EVENT_STREAM, pieces))
}

impl LiveEvents {
    async fn next(&mut self) -> Option<Bytes> {
        while !self.is_over {
            let followed = tokio::select! {
                // The status is sent already: an error can only end the stream.
                followed = self.follower.next() => followed.ok()?,
                () = sleep(KEEP_ALIVE) => return Some(Bytes::from_static(b":\n\n")),
                _ = &mut self.no_longer_served => return None,
            };
            match followed {
                Followed::Delivered(first) => {
                    let mut out = Vec::new();
                    self.put(&first, &mut out);
                    while out.len() < MAX_BATCH_BYTES
                        && let Some(next) = self.follower.ready()
                    {
                        self.put(&next, &mut out);
                    }
                    if !out.is_empty() {
                        return Some(out.into());
                    }
                }
                Followed::CaughtUp { cursor, .. } => {
                    let text = format!("event: caught_up\ndata: {{\"cursor\":{cursor}}}\n\n");
                    return Some(text.into());
                }
                // At the end of the stream a browser reconnects with its last id.
                Followed::Detached(_) => {
                    self.app.metrics.detached();
                    return None;
                }
                // It reconnects here, too, and the answer is that there is no such session.
                Followed::Removed(session) => {
                    self.is_over = true;
                    let data = json!({ "session": session.as_str() });
                    return Some(format!("event: session_removed\ndata: {data}\n\n").into());
                }
            }
        }
        None
    }

    fn put(&mut self, delivered: &Delivered, out: &mut Vec<u8>) {
        let frames = self.stream_kind.frames(&delivered.bytes);
        // A cursor such as `7.1` means that the client has the first frame of event 8.
        let n_known = match delivered.seq == self.after.seq + 1 {
            true => self.after.n_known,
            false => 0,
        };
        for (n, frame) in frames.iter().enumerate().skip(n_known) {
            let cursor = Cursor::behind(delivered.seq, n + 1, frames.len());
            out.extend_from_slice(format!("id: {cursor}\n").as_bytes());
            let frame = frame.strip_suffix(b"\n").unwrap_or(frame);
            // A line break would end the field, so each line of the frame gets a `data` of its own.
            for line in frame.split(|it| *it == b'\n') {
                out.extend_from_slice(b"data: ");
                out.extend_from_slice(line);
                out.push(b'\n');
            }
            out.push(b'\n');
        }
        self.app.metrics.delivered(1, delivered.bytes.len());
    }
}
