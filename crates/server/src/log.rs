//! What the operator's log says about requests: by route, status and code, never by content. Paths, queries and
//! headers hold what clients typed, and tokens.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use tracing::{debug, error, info, warn};

use crate::error::{ApiError, ErrorCode};

/// The parts of a request that its log line has.
#[derive(Debug)]
pub(crate) struct RequestLine {
    method: Method,
    route: Option<MatchedPath>,
    peer: IpAddr,
}

impl RequestLine {
    pub(crate) fn new(request: &Request, peer: IpAddr) -> Self {
        Self {
            method: request.method().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
            peer,
        }
    }

    /// One line for a request that was refused; any other has one at the level `debug`.
    pub(crate) fn answered(&self, response: &Response, took: Duration) {
        let status = response.status();
        let route = self.route.as_ref().map(MatchedPath::as_str);
        let (method, peer) = (self.method.as_str(), &self.peer);
        if !status.is_client_error() && !status.is_server_error() {
            let (status, seconds) = (status.as_u16(), took.as_secs_f64());
            return debug!(method, route, %peer, status, seconds, "request answered");
        }
        let code = response.extensions().get::<ErrorCode>().map(|it| it.0);
        let is_suspicious = is_suspicious(status);
        let is_error = status.is_server_error();
        let status = status.as_u16();
        match (is_error, is_suspicious) {
            (true, _) => error!(method, route, %peer, status, code, "request refused"),
            (_, true) => warn!(method, route, %peer, status, code, "request refused"),
            (_, false) => info!(method, route, %peer, status, code, "request refused"),
        }
    }
}

/// The same for a control over the WebSocket.
pub(crate) fn control_refused(control: Option<&str>, err: &ApiError) {
    let (status, code) = (err.status.as_u16(), err.code);
    match (err.status.is_server_error(), is_suspicious(err.status)) {
        (true, _) => error!(route = "/ws", control, status, code, "request refused"),
        (_, true) => warn!(route = "/ws", control, status, code, "request refused"),
        (_, false) => info!(route = "/ws", control, status, code, "request refused"),
    }
}

/// A refusal that says something about who is asking, and not only about what was asked.
fn is_suspicious(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::MISDIRECTED_REQUEST
            | StatusCode::TOO_MANY_REQUESTS
    )
}
