//! What a tool gave back, whole: `thread` cuts long outputs, shows pictures as links, and leads here.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use formats::{Output, OutputPart, item_output};
use journal::{Read, Session, Stored};
use serde::Deserialize;

use super::Params;
use super::files::{download, kind};
use crate::error::{ApiError, Result};
use crate::state::App;

#[derive(Debug, Deserialize)]
pub(crate) struct OutputParams {
    /// The event that holds it, as links name it; without, the whole session is searched.
    at: Option<u64>,
    /// A block of the result, from 0.
    block: Option<usize>,
    part: Option<String>,
}

pub(crate) async fn read(
    State(app): State<Arc<App>>,
    Path((id, item)): Path<(String, String)>,
    Params(params): Params<OutputParams>,
) -> Result<Response> {
    let session = app.hub.find(&id).await?;
    let part = match (params.block, params.part.as_deref()) {
        (None, None) => OutputPart::Text,
        (Some(block), None) => OutputPart::Block(block),
        (None, Some("structured")) => OutputPart::Structured,
        _ => {
            return Err(ApiError::bad(
                "`block` is a number, or `part` is `structured`; not both",
            ));
        }
    };
    let found = match params.at {
        Some(at) => at_event(&app, &session, at, &item, part).await?,
        None => search(&app, &session, &item, part).await?,
    };
    let found = found.ok_or_else(|| {
        let words = format!("item `{item}` has no such output");
        ApiError::new(StatusCode::NOT_FOUND, "no_such_output", words)
    })?;
    respond(found)
}

/// The output in event `at`, if it is the end of this item.
async fn at_event(
    app: &App,
    session: &Session,
    at: u64,
    item: &str,
    part: OutputPart,
) -> Result<Option<Output>> {
    let page = app.hub.journal().read(&session.id, Read::one(at)).await?;
    let found = page.events.iter().find(|it| it.seq == at);
    Ok(found.and_then(|it| output(it, item, part)))
}

/// The output at the item's end, wherever that is.
async fn search(
    app: &App,
    session: &Session,
    item: &str,
    part: OutputPart,
) -> Result<Option<Output>> {
    let mut after = 0;
    loop {
        let page = app
            .hub
            .journal()
            .read(&session.id, Read::page(after))
            .await?;
        let mut found = page.events.iter().filter_map(|it| output(it, item, part));
        if let Some(found) = found.next() {
            return Ok(Some(found));
        }
        if page.is_last() || page.next <= after {
            return Ok(None);
        }
        after = page.next;
    }
}

fn output(stored: &Stored, item: &str, part: OutputPart) -> Option<Output> {
    item_output(&stored.event()?, item, part)
}

fn respond(output: Output) -> Result<Response> {
    let (bytes, kind) = match output {
        Output::Text(text) => (text.into_bytes(), "text/plain; charset=utf-8"),
        Output::Json(json) => (json.into_bytes(), "application/json"),
        Output::Picture(base64) => {
            let bytes = STANDARD.decode(base64.trim()).unwrap_or_default();
            // By what it holds: what the agent calls it may be a lie.
            let kind = kind(&bytes).filter(|it| it.starts_with("image/"));
            let kind = kind.ok_or_else(|| {
                ApiError::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "not_shown",
                    "only PNG, JPEG, GIF and WebP pictures are shown",
                )
            })?;
            (bytes, kind)
        }
    };
    Ok(download(bytes, kind))
}
