//! A session's events by cursor: what is stored as lines, or what is stored and what happens as SSE.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use formats::registry::StreamKind;
use formats::{WriterConfig, registry};
use futures_util::stream::unfold;
use hub::{Cursor, Delivered, Export, Follow, Followed, Follower, Scope};
use journal::Session;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::sleep;

use super::Params;
use crate::config::MAX_BATCH_BYTES;
use crate::error::{ApiError, Result};
use crate::metrics::{FollowerGuard, Metrics};
use crate::state::App;
use crate::tokens::Caller;

/// Without a word for so long, a comment is sent, so that nobody in between takes the line for dead.
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
    let format = params
        .format
        .unwrap_or_else(|| registry::CANONICAL.to_owned());
    let is_live = headers.get_all(header::ACCEPT).iter().any(|it| {
        it.as_bytes()
            .windows(17)
            .any(|it| it == b"text/event-stream")
    });
    // A browser that comes back says where it was; what the address says is older.
    let last = headers.get("last-event-id").filter(|_| is_live);
    let after = match last
        .and_then(|it| it.to_str().ok())
        .or(params.after.as_deref())
    {
        None | Some("") => Cursor::default(),
        Some(text) => text
            .parse()
            .map_err(|()| ApiError::bad("a cursor is a number such as 7, or `7.1`"))?,
    };
    let output = params.output.map(|it| it.parse()).transpose()?;
    let has_links = registry::find_writer(&format).is_ok_and(|it| it.1.has_links);
    let served = has_links.then(|| app.served(output, false));
    if is_live {
        let follow = Follow {
            scope: Scope::Session {
                id: session.id,
                after: after.seq,
            },
            format,
            profile: params.profile,
            served,
        };
        return live(app, caller, follow, after).await;
    }
    let config = WriterConfig {
        profile: params.profile,
        live: true,
        served,
        ..WriterConfig::default()
    };
    stored(&app, &session, &format, &config, after, params.limit)
}

fn stored(
    app: &App,
    session: &Session,
    format: &str,
    config: &WriterConfig,
    after: Cursor,
    limit: Option<u64>,
) -> Result<Response> {
    let (_, writer) = registry::find_writer(format).map_err(hub::Error::Format)?;
    let journal = Arc::clone(app.hub.journal());
    let export = Export::new(journal, session, format, config, after, limit)
        .map_err(|err| ApiError::from(hub::Error::Format(err)))?;
    let pieces = unfold(Some(export), async |export| {
        let mut export = export?;
        match export.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(export))),
            Ok(None) => None,
            // The connection is cut: a list that ends early must not look whole.
            Err(err) => Some((Err(io::Error::other(err)), None)),
        }
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let kind = HeaderValue::from_static(writer.stream_kind.media_type());
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// Somebody who follows over SSE.
struct LiveEvents {
    app: Arc<App>,
    caller: Caller,
    stream_kind: StreamKind,
    follower: Follower,
    after: Cursor,
    revoked: watch::Receiver<()>,
    stop: watch::Receiver<bool>,
    _counted: FollowerGuard,
}

async fn live(app: Arc<App>, caller: Caller, follow: Follow, after: Cursor) -> Result<Response> {
    let (_, writer) = registry::find_writer(&follow.format).map_err(hub::Error::Format)?;
    let live = LiveEvents {
        stream_kind: writer.stream_kind,
        follower: app.hub.follow(follow).await?,
        caller,
        after,
        revoked: app.revoked.subscribe(),
        stop: app.stop.subscribe(),
        _counted: Metrics::follows(&app)?,
        app,
    };
    let pieces = unfold(live, async |mut live| {
        let piece = live.next().await?;
        Some((Ok::<_, io::Error>(piece), live))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/event-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    // Proxies that gather answers would turn live into late.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

impl LiveEvents {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let followed = tokio::select! {
                followed = self.follower.next() => followed.ok()?,
                () = sleep(KEEP_ALIVE) => return Some(Bytes::from_static(b":\n\n")),
                _ = self.stop.wait_for(|it| *it) => return None,
                changed = self.revoked.changed() => match changed.is_ok() && self.app.knows(&self.caller) {
                    true => continue,
                    false => return None,
                },
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
                // The end of the stream makes a browser come back with its last id.
                Followed::Detached(_) => {
                    self.app.metrics.detached();
                    return None;
                }
            }
        }
    }

    fn put(&mut self, delivered: &Delivered, out: &mut Vec<u8>) {
        let frames = self.stream_kind.frames(&delivered.bytes);
        let n_known = match delivered.seq == self.after.seq + 1 {
            true => self.after.n_known,
            false => 0,
        };
        for (n, frame) in frames.iter().enumerate().skip(n_known) {
            let cursor = Cursor::behind(delivered.seq, n + 1, frames.len());
            out.extend_from_slice(format!("id: {cursor}\n").as_bytes());
            let frame = frame.strip_suffix(b"\n").unwrap_or(frame);
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
