//! The messages of a thread, as AG-UI clients send and keep them.

use model::{Content, ContentPart, Media, MediaSource, MessageContent, ThreadMessage, ToolCall};
use serde_json::{Value, json};

use super::input::{InputError, JsonPath, each};

/// As in a `MESSAGES_SNAPSHOT`. Media are left out: a thread keeps text.
pub(super) fn to_json(message: &ThreadMessage) -> Value {
    let id = &message.id;
    match &message.content {
        MessageContent::Instructions(text) => {
            json!({ "id": id, "role": "system", "content": text })
        }
        MessageContent::User(content) => {
            json!({ "id": id, "role": "user", "content": content.text() })
        }
        MessageContent::Assistant {
            content,
            tool_calls,
        } => {
            let mut message = json!({ "id": id, "role": "assistant" });
            if let Some(content) = content {
                message["content"] = content.as_str().into();
            }
            if !tool_calls.is_empty() {
                message["toolCalls"] = tool_calls.iter().map(call_json).collect();
            }
            message
        }
        MessageContent::Tool {
            call,
            content,
            error,
        } => {
            let mut message = json!({
                "id": id, "role": "tool", "toolCallId": call, "content": content.text(),
            });
            if let Some(error) = error {
                message["error"] = error.as_str().into();
            }
            message
        }
        MessageContent::Reasoning { content, encrypted } => {
            let mut message = json!({ "id": id, "role": "reasoning", "content": content });
            if let Some(encrypted) = encrypted {
                message["encryptedValue"] = encrypted.as_str().into();
            }
            message
        }
        MessageContent::Activity => {
            // A thread keeps nothing of an activity, and the schema requires both fields.
            json!({ "id": id, "role": "activity", "activityType": "item", "content": {} })
        }
    }
}

fn call_json(call: &ToolCall) -> Value {
    json!({
        "id": call.id, "type": "function",
        "function": { "name": call.name, "arguments": call.arguments },
    })
}

pub(super) fn message(it: &JsonPath<'_>) -> Result<ThreadMessage, InputError> {
    it.object()?;
    let content = match it.text("role")? {
        "developer" | "system" => MessageContent::Instructions(it.text("content")?.to_owned()),
        "user" => MessageContent::User(content(&it.needed("content")?)?),
        "assistant" => MessageContent::Assistant {
            // A message that only calls tools has no content.
            content: it.find_text("content")?.map(str::to_owned),
            tool_calls: each(it, "toolCalls", tool_call)?,
        },
        "tool" => MessageContent::Tool {
            call: it.text("toolCallId")?.to_owned(),
            content: content(&it.needed("content")?)?,
            error: it.find_text("error")?.map(str::to_owned),
        },
        "reasoning" => MessageContent::Reasoning {
            content: it.text("content")?.to_owned(),
            encrypted: it.find_text("encryptedValue")?.map(str::to_owned),
        },
        "activity" => MessageContent::Activity,
        role => {
            let words = format!(
                "is `{role}`, expected developer, system, user, assistant, tool, activity or reasoning"
            );
            return Err(it.needed("role")?.wrong(words));
        }
    };
    let id = it.text("id")?.to_owned();
    Ok(ThreadMessage { id, content })
}

fn tool_call(it: &JsonPath<'_>) -> Result<ToolCall, InputError> {
    it.object()?;
    let function = it.needed("function")?;
    function.object()?;
    Ok(ToolCall {
        id: it.text("id")?.to_owned(),
        name: function.text("name")?.to_owned(),
        arguments: function.text("arguments")?.to_owned(),
    })
}

fn content(it: &JsonPath<'_>) -> Result<Content, InputError> {
    match it.value {
        Value::String(text) => Ok(Content::Text(text.clone())),
        Value::Array(_) => Ok(Content::Parts(
            it.list()?.iter().map(part).collect::<Result<_, _>>()?,
        )),
        Value::Number(_) => Err(it.wrong("is a number, expected a string or a list of parts")),
        Value::Null | Value::Bool(_) | Value::Object(_) => {
            Err(it.wrong("is neither a string nor a list of parts"))
        }
    }
}

fn part(it: &JsonPath<'_>) -> Result<ContentPart, InputError> {
    it.object()?;
    let media = match it.text("type")? {
        "text" => return Ok(ContentPart::Text(it.text("text")?.to_owned())),
        "binary" => return binary(it),
        "image" => Media::Image,
        "audio" => Media::Audio,
        "video" => Media::Video,
        "document" => Media::Document,
        other => {
            let words = format!("is `{other}`, expected text, image, audio, video or document");
            return Err(it.needed("type")?.wrong(words));
        }
    };
    // Where the 1.0 client moves the file name of a `binary` part.
    let filename = it
        .find("metadata")
        .and_then(|it| it.value.get("filename")?.as_str().map(str::to_owned));
    Ok(ContentPart::Media {
        media,
        source: source(&it.needed("source")?)?,
        filename,
    })
}

fn source(it: &JsonPath<'_>) -> Result<MediaSource, InputError> {
    it.object()?;
    let value = || it.text("value").map(str::to_owned);
    match it.text("type")? {
        "data" => Ok(MediaSource::Data {
            value: value()?,
            mime_type: it.text("mimeType")?.to_owned(),
        }),
        "url" => Ok(MediaSource::Url {
            value: value()?,
            mime_type: it.find_text("mimeType")?.map(str::to_owned),
        }),
        "file" => Ok(MediaSource::File { value: value()? }),
        other => {
            let words = format!("is `{other}`, expected data, url or file");
            Err(it.needed("type")?.wrong(words))
        }
    }
}

/// The part type of clients before 1.0, distinguished only by media type.
fn binary(it: &JsonPath<'_>) -> Result<ContentPart, InputError> {
    let mime_type = it.text("mimeType")?.to_owned();
    let media = match mime_type.split('/').next() {
        Some("image") => Media::Image,
        Some("audio") => Media::Audio,
        Some("video") => Media::Video,
        _ => Media::Document,
    };
    let (data, url) = (it.find_text("data")?, it.find_text("url")?);
    let source = match (data, url, it.find_text("id")?) {
        (Some(data), _, _) => MediaSource::Data {
            value: data.to_owned(),
            mime_type,
        },
        (None, Some(url), _) => MediaSource::Url {
            value: url.to_owned(),
            mime_type: Some(mime_type),
        },
        (None, None, Some(id)) => MediaSource::File {
            value: id.to_owned(),
        },
        (None, None, None) => return Err(it.wrong("has neither `data` nor `url` nor `id`")),
    };
    Ok(ContentPart::Media {
        media,
        source,
        filename: it.find_text("filename")?.map(str::to_owned),
    })
}
