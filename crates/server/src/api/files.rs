//! Files below a session's directory: texts and images, nothing that a link leads out to, and nothing
//! that is private.

use std::io::{self, Read};
use std::path::{Path as FsPath, PathBuf};
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::Params;
use crate::beneath;
use crate::error::{ApiError, Result};
use crate::private::{self, HiddenReason, OwnPaths};
use crate::state::App;
use crate::tokens::Caller;

pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// Bytes of a file that are shown.
const MAX_FILE: u64 = 16 << 20;

#[derive(Debug, Deserialize)]
pub(crate) struct FileParams {
    path: String,
}

pub(crate) async fn read(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Params(params): Params<FileParams>,
) -> Result<Response> {
    let session = app.hub.find(&id).await?;
    let cwd = session.cwd.map(PathBuf::from).ok_or_else(no_file)?;
    let path = PathBuf::from(params.path);
    // By its name first: that does not reveal whether the file exists.
    let named = private::named(&path).map(HiddenReason::Named);
    refuse_hidden(named, &caller)?;
    let read = tokio::task::spawn_blocking(move || load(&app.own, &caller, &cwd, &path)).await;
    let bytes = read.unwrap_or_else(|_| Err(no_file()))?;
    let message = "only texts and images are shown";
    let media_type = media_type(&bytes).ok_or_else(|| not_shown(message))?;
    Ok(download(bytes, media_type))
}

/// Something of the agent's. Opened by itself it is a download, never a page of this server.
pub(super) fn download(bytes: Vec<u8>, media_type: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (header::CONTENT_DISPOSITION, "attachment"),
    ];
    (headers, bytes).into_response()
}

pub(super) fn not_shown(message: &'static str) -> ApiError {
    ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_shown", message)
}

/// A missing file and one outside of the directory get the same error.
fn no_file() -> ApiError {
    ApiError::not_found("no_such_file", "there is no such file")
}

fn refuse_hidden(reason: Option<HiddenReason>, caller: &Caller) -> Result<()> {
    match reason.filter(|it| it.is_kept_from(caller)) {
        Some(reason) => Err(reason.refusal()),
        None => Ok(()),
    }
}

fn load(own: &OwnPaths, caller: &Caller, cwd: &FsPath, path: &FsPath) -> Result<Vec<u8>> {
    let failed = |_: io::Error| no_file();
    // `RESOLVE_BENEATH` refuses every absolute path, also one below the directory.
    let path = path.strip_prefix(cwd).unwrap_or(path);
    let file = beneath::open(cwd, path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    let real = private::real_path(&file, &cwd.join(path)).map_err(failed)?;
    // Again for the path behind every link: a harmless name may lead to a private file.
    refuse_hidden(own.find_file(&real, &found), caller)?;
    let mut bytes = Vec::new();
    if found.is_file() {
        // One byte more than is shown, because a file may grow while it is read.
        let mut file = file.take(MAX_FILE + 1);
        file.read_to_end(&mut bytes).map_err(failed)?;
    }
    if !found.is_file() || bytes.len() as u64 > MAX_FILE {
        let message = format!("it is no file, or has more than {MAX_FILE} bytes");
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return Err(ApiError::new(status, "not_shown", message));
    }
    // A private key may have any name.
    let key = private::holds_key(&bytes).then_some(HiddenReason::Key);
    refuse_hidden(key, caller)?;
    Ok(bytes)
}

/// What a file is, by what it holds; its name may lie.
pub(super) fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        // Between the two words is the length of the file.
        _ if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") => Some("image/webp"),
        // A text has no zero bytes, although UTF-8 allows them.
        _ if bytes.contains(&0) => None,
        _ => str::from_utf8(bytes).ok().map(|_| TEXT),
    }
}
