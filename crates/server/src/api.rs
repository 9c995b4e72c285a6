//! `/api`: what each route takes and answers.

pub(crate) mod asks;
pub(crate) mod engines;
pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod me;
pub(crate) mod outputs;
pub(crate) mod runs;
pub(crate) mod sessions;

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::config::{BODY, MAX_BODY};
use crate::error::ApiError;
use crate::fields::{self, Fields};
use crate::state::App;

/// What only a new start can mend is told; a full disk is not among that.
pub(crate) async fn healthz(State(app): State<Arc<App>>) -> impl IntoResponse {
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    match app.hub.journal().check() {
        Ok(()) => (StatusCode::OK, kind, "ok\n"),
        // Not which file: nobody has to show a token here.
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
        let body = timeout(BODY, to_bytes(request.into_body(), MAX_BODY)).await;
        let body = body.map_err(|_| {
            ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "too_slow",
                "the body did not come in time",
            )
        })?;
        let body = body.map_err(|_| {
            let words = format!("a body may have {MAX_BODY} bytes");
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", words)
        })?;
        fields::from_slice(&body).map(Self)
    }
}

/// What follows the question mark.
#[derive(Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(it)) => Ok(Self(it)),
            Err(err) => Err(ApiError::bad(format!("the query cannot be read: {err}"))),
        }
    }
}
