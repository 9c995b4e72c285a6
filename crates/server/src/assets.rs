//! The page, inside the program: every file by name, so that nothing else is ever served.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::error::ApiError;
use crate::tokens::hex;

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../assets/", $name)))),*]
    };
}

const INDEX: &[u8] = include_bytes!("../index.html");

/// What is below `assets`, which is `web/assets`; a test keeps both the same.
const FILES: &[(&str, &[u8])] = files![
    "agents.js",
    "answered.js",
    "api.js",
    "app.js",
    "cards.css",
    "cards.js",
    "cards/ask.js",
    "cards/message.js",
    "cards/notes.js",
    "cards/parts.js",
    "cards/plan.js",
    "cards/tool.js",
    "composer.js",
    "diff.js",
    "dom.js",
    "drafts.js",
    "feed.js",
    "fold.js",
    "follow.js",
    "frame.js",
    "gate.js",
    "grants.js",
    "help.js",
    "icon.svg",
    "keys.js",
    "labels.js",
    "list.js",
    "markdown.js",
    "me.js",
    "page.css",
    "past.js",
    "pending.js",
    "socket.js",
    "start.js",
    "stop.js",
    "storage.js",
    "store.js",
    "token.js",
    "top.js",
    "transcript.css",
    "viewer.js",
    "words.js",
];

/// A version of all of it: browsers ask whether what they have is still right.
static TAG: LazyLock<HeaderValue> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    hash.update(INDEX);
    for (name, bytes) in FILES {
        hash.update(name);
        hash.update(bytes);
    }
    let tag = format!("\"{}\"", &hex(&hash.finalize())[..32]);
    HeaderValue::try_from(tag).expect("it is hexadecimal")
});

pub(crate) async fn index(headers: HeaderMap) -> Response {
    serve(&headers, "text/html; charset=utf-8", INDEX)
}

pub(crate) async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    match FILES.iter().find(|it| it.0 == path) {
        Some((name, bytes)) => serve(&headers, kind(name), bytes),
        None => ApiError::not_found("not_found", "the page has no such file").into_response(),
    }
}

fn serve(headers: &HeaderMap, kind: &'static str, bytes: &'static [u8]) -> Response {
    let known = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut known = known
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(','));
    // A proxy that compresses marks the tag as weak.
    let is_known = known.any(|it| it.trim().trim_start_matches("W/").as_bytes() == TAG.as_bytes());
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::ETAG, TAG.clone()),
        // Kept by browsers, but checked before each use: an update has to reach all files.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, headers).into_response(),
        false => (headers, bytes).into_response(),
    }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|it| it.1) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn names(dir: &Path, below: &str, found: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                names(&entry.path(), &format!("{name}/"), found);
            } else {
                found.push(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_page_is_served_and_has_a_type() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let mut found = Vec::new();
        names(&dir, "", &mut found);
        found.sort();
        let served: Vec<&str> = FILES.iter().map(|it| it.0).collect();
        assert_eq!(served, found);
        for name in served {
            assert_ne!(kind(name), "application/octet-stream", "{name}");
        }
    }
}
