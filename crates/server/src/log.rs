//! The operator's log of requests: by route, status and code, never by content. Paths, queries and headers
//! hold what clients typed, and tokens.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use tracing::{Level, debug, error, info, warn};

use crate::error::{ApiError, ErrorCode};

/// Words of an unknown path that are logged, and the characters of each.
const MAX_WORDS: usize = 8;
const MAX_WORD: usize = 24;

/// Marks the response to a peer whose earlier failure is in the log already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedBefore;

/// The parts of a request that its log line has.
#[derive(Debug)]
pub(crate) struct RequestLine {
    method: Method,
    route: Option<MatchedPath>,
    /// Of a request without a route.
    path: Option<String>,
    peer: IpAddr,
}

impl RequestLine {
    pub(crate) fn new(request: &Request, peer: IpAddr) -> Self {
        let route = request.extensions().get::<MatchedPath>().cloned();
        Self {
            method: request.method().clone(),
            path: route.is_none().then(|| plain_words(request.uri().path())),
            route,
            peer,
        }
    }

    /// One line for a request that was refused; any other has one at the level `debug`.
    pub(crate) fn answered(&self, response: &Response, took: Duration) {
        let status = response.status();
        let route = self.route.as_ref().map(MatchedPath::as_str);
        let (method, peer) = (self.method.as_str(), self.peer);
        let is_refused = status.is_client_error() || status.is_server_error();
        if !is_refused || response.extensions().get::<LoggedBefore>().is_some() {
            let (status, seconds) = (status.as_u16(), took.as_secs_f64());
            return debug!(method, route, %peer, status, seconds, "request answered");
        }
        let path = self.path.as_deref();
        let code = response.extensions().get::<ErrorCode>().map(|it| it.0);
        let level = level(status);
        let status = status.as_u16();
        // The level of an event is part of its static metadata, so each has a macro of its own.
        match level {
            Level::ERROR => error!(method, route, path, %peer, status, code, "request refused"),
            Level::WARN => warn!(method, route, path, %peer, status, code, "request refused"),
            _ => info!(method, route, path, %peer, status, code, "request refused"),
        }
    }
}

/// The same for a control over the WebSocket.
pub(crate) fn control_refused(control: Option<&str>, err: &ApiError) {
    let (status, code) = (err.status.as_u16(), err.code);
    match level(err.status) {
        Level::ERROR => error!(route = "/ws", control, status, code, "request refused"),
        Level::WARN => warn!(route = "/ws", control, status, code, "request refused"),
        _ => info!(route = "/ws", control, status, code, "request refused"),
    }
}

/// A refusal that says something about the caller, and not only about the request, is a warning.
fn level(status: StatusCode) -> Level {
    match status {
        StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::MISDIRECTED_REQUEST
        | StatusCode::TOO_MANY_REQUESTS => Level::WARN,
        status if status.is_server_error() => Level::ERROR,
        _ => Level::INFO,
    }
}

/// A path as far as it consists of plain words, such as `/api/sesions/…`: an id or a token has digits.
fn plain_words(path: &str) -> String {
    let is_plain = |it: &str| {
        let has_digit = it.bytes().any(|it| it.is_ascii_digit());
        let is_part = |it: u8| it.is_ascii_alphanumeric() || b".-_".contains(&it);
        // With up to two characters, such as `v1`, it is no id.
        it.len() <= MAX_WORD && it.bytes().all(is_part) && (!has_digit || it.len() <= 2)
    };
    let words = path.split('/').take(MAX_WORDS + 1);
    let words = words.map(|it| if is_plain(it) { it } else { "…" });
    words.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::plain_words;

    #[test]
    fn of_an_unknown_path_only_plain_words_are_logged() {
        for (path, logged) in [
            ("/", "/"),
            ("/api/sesions/019a1b2c/events", "/api/sesions/…/events"),
            ("/v1/chat/completions", "/v1/chat/completions"),
            ("/lsp_0a1b2c", "/…"),
            ("/a%20b/c\u{1b}", "/…/…"),
            ("/a/b/c/d/e/f/g/h/i", "/a/b/c/d/e/f/g/h"),
        ] {
            assert_eq!(plain_words(path), logged);
        }
    }
}
