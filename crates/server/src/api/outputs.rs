//! What a tool gave back, whole: `thread` cuts long outputs, shows pictures as links, and leads here.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use formats::{Output, OutputPart, item_output};
use hub::LogPages;
use journal::{Deltas, Stored};
use serde::Deserialize;

use super::Params;
use super::files::{TEXT, download, media_type, not_shown};
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
            let message = "`block` is a number, or `part` is `structured`; not both";
            return Err(ApiError::bad(message));
        }
    };
    // The output is in the event that closes the item: the one that a link names, else any of them.
    let span = match params.at {
        Some(at) => at.saturating_sub(1)..at,
        None => 0..session.head,
    };
    let mut pages = LogPages::new(&**app.hub.journal(), &session.id, span, Deltas::Skip);
    while let Some(events) = pages.next().await? {
        let mut events = events.iter().filter_map(Stored::event);
        if let Some(output) = events.find_map(|it| item_output(&it, &item, part)) {
            return respond(output);
        }
    }
    let message = format!("item `{item}` has no such output");
    Err(ApiError::not_found("no_such_output", message))
}

fn respond(output: Output) -> Result<Response> {
    let (bytes, media_type) = match output {
        Output::Text(text) => (text.into_bytes(), TEXT),
        Output::Json(json) => (json.into_bytes(), "application/json"),
        Output::Picture(base64) => {
            let bytes = STANDARD.decode(base64.trim()).unwrap_or_default();
            // By its content: an agent may name a wrong type.
            let media_type = media_type(&bytes).filter(|it| it.starts_with("image/"));
            let message = "only PNG, JPEG, GIF and WebP pictures are shown";
            let media_type = media_type.ok_or_else(|| not_shown(message))?;
            (bytes, media_type)
        }
    };
    Ok(download(bytes, media_type))
}
