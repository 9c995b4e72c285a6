//! Files below a session's directory: texts and images, nothing that a link leads out to, and nothing
//! that is private.

use std::io::{self, Read};
use std::path::{Path as FsPath, PathBuf};
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;

use super::Params;
use crate::beneath;
use crate::error::{ApiError, Result};
use crate::private::{self, HiddenReason, OwnPaths};
use crate::state::App;
use crate::tokens::Caller;

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
    let none = || {
        ApiError::new(
            StatusCode::NOT_FOUND,
            "no_such_file",
            "there is no such file",
        )
    };
    let cwd = session.cwd.map(PathBuf::from).ok_or_else(none)?;
    let path = PathBuf::from(params.path);
    // By its name first: that says nothing about whether the file is there.
    let private = private::named(&path).map(HiddenReason::Named);
    if let Some(private) = private.filter(|it| it.is_kept_from(&caller)) {
        return Err(private.refusal());
    }
    let work = Arc::clone(&app);
    let read = tokio::task::spawn_blocking(move || load(&work.own, &cwd, &path)).await;
    let (bytes, private) = match read.map_err(io::Error::other).flatten() {
        Ok(FoundFile::File(bytes, private)) => (bytes, private),
        Ok(FoundFile::Own) => return Err(HiddenReason::Own.refusal()),
        Ok(FoundFile::NotShown) => {
            let words = format!("it is no file, or has more than {MAX_FILE} bytes");
            return Err(ApiError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "not_shown",
                words,
            ));
        }
        // Whether a file is missing or lies elsewhere is not told apart.
        Err(_) => return Err(none()),
    };
    if let Some(private) = private.filter(|it| it.is_kept_from(&caller)) {
        return Err(private.refusal());
    }
    let Some(kind) = kind(&bytes) else {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "not_shown",
            "only texts and images are shown",
        ));
    };
    Ok(download(bytes, kind))
}

/// Something of the agent's. Opened by itself it is a download, never a page of this server.
pub(super) fn download(bytes: Vec<u8>, kind: &'static str) -> Response {
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let attachment = HeaderValue::from_static("attachment");
    headers.insert(header::CONTENT_DISPOSITION, attachment);
    response
}

/// What a path has led to.
enum FoundFile {
    /// A file, and what stands against showing it.
    File(Vec<u8>, Option<HiddenReason>),
    /// One of linkspan's own; it was not read.
    Own,
    /// It is no file, or too long.
    NotShown,
}

fn load(own: &OwnPaths, cwd: &FsPath, path: &FsPath) -> io::Result<FoundFile> {
    let path = path.strip_prefix(cwd).unwrap_or(path);
    let file = beneath::open(cwd, path)?;
    let found = file.metadata()?;
    let real = private::real_path(&file, &cwd.join(path))?;
    let private = own.find_file(&real, &found);
    if private == Some(HiddenReason::Own) {
        return Ok(FoundFile::Own);
    }
    if !found.is_file() || found.len() > MAX_FILE {
        return Ok(FoundFile::NotShown);
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Ok(FoundFile::NotShown);
    }
    let private = private.or_else(|| private::holds_key(&bytes).then_some(HiddenReason::Key));
    Ok(FoundFile::File(bytes, private))
}

/// What a file is, by what it holds; its name may lie.
pub(crate) fn kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ if bytes.contains(&0) => None,
        _ => str::from_utf8(bytes)
            .ok()
            .map(|_| "text/plain; charset=utf-8"),
    }
}
