//! What a message holds, in the parts that a provider takes.

use model::{Content, ContentPart, Media, MediaSource};
use serde_json::{Value, json};

use super::UnsupportedInput;
use crate::endpoint::Provider;

/// What a user says.
pub(super) fn content(
    provider: Provider,
    content: &Content,
    field: &impl Fn() -> String,
) -> Result<Value, UnsupportedInput> {
    let parts = match content {
        Content::Text(text) => return Ok(text.as_str().into()),
        Content::Parts(parts) => parts,
    };
    let parts = parts.iter().enumerate();
    parts
        .map(|(n, it)| part(provider, it, || format!("{}[{n}]", field())))
        .collect()
}

/// What a tool has answered. The schema has no flag for a failure, so the words say it.
pub(super) fn output(
    provider: Provider,
    said: &Content,
    error: Option<&str>,
    field: &impl Fn() -> String,
) -> Result<Value, UnsupportedInput> {
    let Some(error) = error else {
        return content(provider, said, field);
    };
    let text = said.text();
    Ok(match text.is_empty() || text == error {
        true => format!("error: {error}"),
        false => format!("error: {error}\n{text}"),
    }
    .into())
}

fn part(
    provider: Provider,
    part: &ContentPart,
    field: impl Fn() -> String,
) -> Result<Value, UnsupportedInput> {
    let (media, source, filename) = match part {
        ContentPart::Text(text) => return Ok(json!({ "type": "input_text", "text": text })),
        ContentPart::Media {
            media,
            source,
            filename,
        } => (*media, source, filename.as_deref()),
    };
    let refused = |what: &str| Err(UnsupportedInput::new(field(), what));
    let kind = match media {
        Media::Image => "input_image",
        // There is no part for sound; to a model that hears, a file is what it takes.
        Media::Audio | Media::Document => "input_file",
        Media::Video => return refused("is a video, which no model takes from a user"),
    };
    if let MediaSource::File { .. } = source {
        return refused("is a handle of a file, which only its provider knows");
    }
    if provider == Provider::OpenClaw {
        return Ok(openclaw(kind, source, filename));
    }
    Ok(match media {
        Media::Image => match source {
            MediaSource::Url { value, .. } => json!({ "type": kind, "image_url": value }),
            MediaSource::Data { value, mime_type } => {
                json!({ "type": kind, "image_url": data_url(mime_type, value) })
            }
            MediaSource::File { .. } => Value::Null,
        },
        Media::Audio | Media::Document | Media::Video => file(provider, kind, source, filename),
    })
}

fn file(provider: Provider, kind: &str, source: &MediaSource, filename: Option<&str>) -> Value {
    match source {
        MediaSource::Url { value, .. } => {
            let mut part = json!({ "type": kind, "file_url": value });
            if let Some(filename) = filename {
                part["filename"] = filename.into();
            }
            part
        }
        MediaSource::Data { value, mime_type } => {
            let filename = filename.map_or_else(|| usual_name(mime_type), str::to_owned);
            let data = match provider {
                // They want to be told what it is.
                Provider::OpenAi | Provider::Azure => data_url(mime_type, value),
                Provider::HuggingFace | Provider::OpenClaw | Provider::Custom => value.clone(),
            };
            json!({ "type": kind, "filename": filename, "file_data": data })
        }
        MediaSource::File { .. } => Value::Null,
    }
}

/// OpenClaw's own shape.
fn openclaw(kind: &str, source: &MediaSource, filename: Option<&str>) -> Value {
    let mut inner = match source {
        MediaSource::Url { value, mime_type } => {
            let mut inner = json!({ "type": "url", "url": value });
            if let Some(mime_type) = mime_type {
                inner["media_type"] = mime_type.as_str().into();
            }
            inner
        }
        MediaSource::Data { value, mime_type } => {
            json!({ "type": "base64", "data": value, "media_type": mime_type })
        }
        MediaSource::File { .. } => Value::Null,
    };
    if let Some(filename) = filename {
        inner["filename"] = filename.into();
    }
    json!({ "type": kind, "source": inner })
}

fn data_url(mime_type: &str, data: &str) -> String {
    format!("data:{mime_type};base64,{data}")
}

/// A file needs a name, if only for its ending.
fn usual_name(mime_type: &str) -> String {
    let ending = match mime_type {
        "application/pdf" => "pdf",
        "audio/mpeg" => "mp3",
        "text/plain" => "txt",
        "text/markdown" => "md",
        other => other.rsplit(['/', '+']).next().unwrap_or("bin"),
    };
    format!("file.{ending}")
}
