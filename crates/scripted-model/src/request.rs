//! What an agent asked, as the tests see it and as the log keeps it: secrets are replaced by `<redacted>`.

use axum::http::request::Parts;
use serde::Serialize;

/// One request that reached the server, answered or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names in lower case, in the order of arrival.
    pub headers: Vec<(String, String)>,
    /// The text as it came; JSON if the agent sent JSON.
    pub body: String,
    /// Which lane answered; none if the request was no call of the model.
    pub lane: Option<String>,
}

const REDACTED: &str = "<redacted>";
const SECRET_HEADERS: &[&str] = &[
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "api-key",
    "proxy-authorization",
    "cookie",
];
/// Gemini also takes its key here.
const SECRET_PARAMETER: &str = "key";

impl Request {
    pub(crate) fn new(head: &Parts, body: String) -> Request {
        let headers = head.headers.iter().map(|(name, value)| {
            let value = match SECRET_HEADERS.contains(&name.as_str()) {
                true => REDACTED.to_owned(),
                false => String::from_utf8_lossy(value.as_bytes()).into_owned(),
            };
            (name.as_str().to_owned(), value)
        });
        Request {
            method: head.method.as_str().to_owned(),
            path: path(head.uri.path(), head.uri.query()),
            headers: headers.collect(),
            body,
            lane: None,
        }
    }
}

fn path(path: &str, query: Option<&str>) -> String {
    let Some(query) = query else {
        return path.to_owned();
    };
    let parameters = query.split('&').map(|it| match it.split_once('=') {
        Some((SECRET_PARAMETER, _)) => format!("{SECRET_PARAMETER}={REDACTED}"),
        _ => it.to_owned(),
    });
    format!("{path}?{}", parameters.collect::<Vec<_>>().join("&"))
}
