//! `/api`: what each route takes and answers.

pub(crate) mod asks;
pub(crate) mod engines;
pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod me;
pub(crate) mod outputs;
pub(crate) mod runs;
pub(crate) mod sessions;

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::config::{BODY, MAX_BODY};
use crate::error::ApiError;
use crate::fields::{self, Fields};
use crate::state::App;

/// Reports what only a restart can mend; a full disk is not among that.
pub(crate) async fn healthz(State(app): State<Arc<App>>) -> impl IntoResponse {
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    match app.hub.journal().check() {
        Ok(()) => (StatusCode::OK, kind, "ok\n"),
        // Does not name the file: this route needs no token.
        Err(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            kind,
            "the journal was deleted or replaced; start the server again\n",
        ),
    }
}

/// A body in JSON, with the fields of `T` and no others.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Fields, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let body = read_body(request.into_body(), MAX_BODY).await?;
        fields::from_slice(&body).map(Self)
    }
}

/// The whole body, if it is not too long and does not take too long.
pub(crate) async fn read_body(body: Body, max_bytes: usize) -> Result<Bytes, ApiError> {
    let body = timeout(BODY, to_bytes(body, max_bytes)).await;
    let body = body.map_err(|_| {
        let message = "the body did not come in time";
        ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message)
    })?;
    // `to_bytes` also fails when a body breaks off, but then no client is left to read the answer.
    body.map_err(|_| ApiError::too_large("too_large", format!("a body may have {max_bytes} bytes")))
}

/// A response whose pieces are sent as they come.
pub(crate) fn live_response(
    media_type: &'static str,
    pieces: impl Stream<Item = Bytes> + Send + 'static,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, media_type),
        // nginx buffers responses otherwise, and live events would arrive late.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let pieces = pieces.map(Ok::<_, Infallible>);
    (headers, Body::from_stream(pieces)).into_response()
}

/// The query parameters.
#[derive(Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(it)) => Ok(Self(it)),
            Err(err) => Err(unreadable(&parts.uri, &err.body_text())),
        }
    }
}

/// Why a query cannot be read, with the name and the value of the parameter where there is one.
fn unreadable(uri: &Uri, text: &str) -> ApiError {
    let words = text.split_once("query string: ").map_or(text, |it| it.1);
    let Some((name, _)) = words.split_once(": ") else {
        return ApiError::bad(format!("the query cannot be read: {words}"));
    };
    let given = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let mut given = given.into_iter().flat_map(|it| it.0);
    let value = given.find(|it| it.0 == name).unwrap_or_default().1;
    // All other parameters are texts, which can always be read; the parser's own words are for programmers.
    ApiError::bad(format!(
        "`{name}` cannot be read: expected a whole number, not `{value}`"
    ))
}
