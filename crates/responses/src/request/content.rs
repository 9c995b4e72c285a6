//! What a message holds, in the parts that a provider takes.

use model::{Content, ContentPart, Media, MediaSource};
use serde_json::{Value, json};

use super::UnsupportedInput;
use crate::endpoint::Provider;

/// The content of a user's message.
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

/// The result of a tool. The schema has no flag for a failure, so the text reports it.
pub(super) fn output(
    provider: Provider,
    result: &Content,
    error: Option<&str>,
    field: &impl Fn() -> String,
) -> Result<Value, UnsupportedInput> {
    let Some(error) = error else {
        return content(provider, result, field);
    };
    let text = result.text();
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
    let (is_url, value, mime_type) = match source {
        MediaSource::Url { value, mime_type } => (true, value, mime_type.as_deref()),
        MediaSource::Data { value, mime_type } => (false, value, Some(mime_type.as_str())),
        MediaSource::File { .. } => {
            return refused("is a handle of a file, which only its provider knows");
        }
    };
    let data_url = || format!("data:{};base64,{value}", mime_type.unwrap_or_default());
    let mut part = json!({ "type": kind });
    match (provider, media, is_url) {
        // OpenClaw wants a `source` object where the specification has single fields.
        (Provider::OpenClaw, _, _) => {
            let mut inner = match is_url {
                true => json!({ "type": "url", "url": value }),
                false => json!({ "type": "base64", "data": value }),
            };
            set(&mut inner, "media_type", mime_type);
            set(&mut inner, "filename", filename);
            part["source"] = inner;
        }
        (_, Media::Image, true) => part["image_url"] = json!(value),
        // The schema has no field for image data, but takes it as an address.
        (_, Media::Image, false) => part["image_url"] = json!(data_url()),
        (_, _, true) => {
            part["file_url"] = json!(value);
            set(&mut part, "filename", filename);
        }
        (_, _, false) => {
            let usual = usual_name(mime_type.unwrap_or_default());
            part["filename"] = json!(filename.unwrap_or(&usual));
            part["file_data"] = match provider {
                // They want the media type with the data.
                Provider::OpenAi | Provider::Azure => json!(data_url()),
                Provider::HuggingFace | Provider::OpenClaw | Provider::Custom => json!(value),
            };
        }
    }
    Ok(part)
}

fn set(object: &mut Value, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        object[key] = json!(value);
    }
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
