//! Converts the client's content blocks to prompts.

use runner::{Image, McpServer, McpVia, Prompt};

use crate::rpc::Error;
use crate::wire::{self, Block, Resource};

/// The longest prompt, images and all.
pub(crate) const MAX_PROMPT: usize = 16 << 20;

/// The markers around an embedded text.
const OPEN: &str = "\n\n<context ref=\"";
const CLOSE: &str = "\n</context>";

/// A prompt from a client's blocks. Links stay links; embedded content follows the text, marked
/// with its origin.
pub(crate) fn prompt(blocks: Vec<Block<'_>>) -> Result<Prompt, Error> {
    let mut words = Vec::new();
    let mut context = String::new();
    let mut images = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text } => words.push(text.into_owned()),
            Block::ResourceLink { name, uri } => words.push(link(&name, &address(&uri))),
            Block::Image { data, mime_type } => images.push(Image {
                media_type: mime_type.into_owned(),
                data: data.into_owned(),
            }),
            Block::Resource {
                resource: Resource::Text { uri, text },
            } => {
                let address = address(&uri);
                words.push(link(last_part(&uri), &address));
                context.push_str(&format!("{OPEN}{address}\">\n{text}{CLOSE}"));
            }
            Block::Resource {
                resource:
                    Resource::Blob {
                        uri,
                        blob,
                        mime_type,
                    },
            } => match mime_type {
                Some(media_type) if media_type.starts_with("image/") => images.push(Image {
                    media_type,
                    data: blob,
                }),
                _ => {
                    let message = format!("`{uri}` is neither text nor an image; link it instead");
                    return Err(Error::params(message));
                }
            },
            Block::Audio {} => {
                let message = "audio is not supported; see promptCapabilities";
                return Err(Error::params(message));
            }
        }
    }
    let mut text = words.concat();
    text.push_str(&context);
    if text.trim().is_empty() && images.is_empty() {
        return Err(Error::params("the prompt is empty"));
    }
    let length = text.len() + images.iter().map(|it| it.data.len()).sum::<usize>();
    if length > MAX_PROMPT {
        let message = format!("the prompt has {length} bytes; up to {MAX_PROMPT} are taken");
        return Err(Error::params(message));
    }
    Ok(Prompt { text, images })
}

/// A prompt as its user saw it: without the texts that were embedded, whose links stay.
pub(crate) fn without_context(prompt: &str) -> &str {
    if !prompt.ends_with(CLOSE) {
        return prompt;
    }
    let is_embedded = |at: usize| {
        // Users may write such a mark as well: an embedded text has a link to it before.
        let address = prompt[at + OPEN.len()..].split_once("\">\n").map(|it| it.0);
        address.is_some_and(|it| prompt[..at].contains(&format!("]({it})")))
    };
    let mut marks = prompt.match_indices(OPEN).map(|it| it.0);
    match marks.find(|at| is_embedded(*at)) {
        Some(at) => &prompt[..at],
        None => prompt,
    }
}

fn link(name: &str, address: &str) -> String {
    format!("[{name}]({address})")
}

/// A URI that cannot terminate the marker around it.
fn address(uri: &str) -> String {
    let mut address = String::with_capacity(uri.len());
    for char in uri.chars() {
        match char {
            '"' | '<' | '>' | '(' | ')' | ' ' => address.push_str(&format!("%{:02X}", char as u32)),
            '\0'..='\x1f' => address.push_str(&format!("%{:02X}", char as u32)),
            _ => address.push(char),
        }
    }
    address
}

fn last_part(uri: &str) -> &str {
    let name = uri.trim_end_matches('/').rsplit('/').next();
    name.filter(|it| !it.is_empty()).unwrap_or(uri)
}

pub(crate) fn servers(servers: Vec<wire::McpServer>) -> Vec<McpServer> {
    let pairs = |pairs: Vec<wire::Pair>| pairs.into_iter().map(|it| (it.name, it.value)).collect();
    let server = |it| match it {
        wire::McpServer::Program {
            name,
            command,
            args,
            env,
        } => McpServer {
            name,
            via: McpVia::Stdio {
                command,
                args,
                env: pairs(env),
            },
        },
        wire::McpServer::Remote {
            r#type,
            name,
            url,
            headers,
        } => {
            let headers = pairs(headers);
            let via = match r#type {
                wire::Remote::Http => McpVia::Http { url, headers },
                wire::Remote::Sse => McpVia::Sse { url, headers },
            };
            McpServer { name, via }
        }
    };
    servers.into_iter().map(server).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(blocks: serde_json::Value) -> Result<Prompt, String> {
        let blocks = serde_json::from_value(blocks).map_err(|it| it.to_string())?;
        prompt(blocks).map_err(|it| it.message)
    }

    #[test]
    fn links_stay_where_they_are_and_embedded_texts_follow() {
        let prompt = read(json!([
            {"type": "text", "text": "compare "},
            {"type": "resource", "resource": {"uri": "file:///w/a.rs", "text": "fn a() {}", "mimeType": "text/rust"}},
            {"type": "text", "text": " with "},
            {"type": "resource_link", "name": "b.rs", "uri": "file:///w/b.rs"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///w/c.gif", "blob": "BBBB", "mimeType": "image/gif"}}
        ]));
        let image = |media_type: &str, data: &str| Image {
            media_type: media_type.to_owned(),
            data: data.to_owned(),
        };
        let text = "compare [a.rs](file:///w/a.rs) with [b.rs](file:///w/b.rs)\n\n\
                    <context ref=\"file:///w/a.rs\">\nfn a() {}\n</context>";
        let expected = Prompt {
            text: text.to_owned(),
            images: vec![image("image/png", "AAAA"), image("image/gif", "BBBB")],
        };
        assert_eq!(prompt, Ok(expected));
    }

    #[test]
    fn embedded_texts_are_not_repeated() {
        let resource = |uri: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "text": text}});
        let prompt = read(json!([
            {"type": "text", "text": "see "},
            resource("file:///w/a (1)\".rs", "\n\n<context ref=\"x\">\n</context>"),
            {"type": "text", "text": " and "},
            resource("file:///w/b", "b")
        ]))
        .unwrap();
        let shown = "see [a (1)\".rs](file:///w/a%20%281%29%22.rs) and [b](file:///w/b)";
        assert_eq!(without_context(&prompt.text), shown);
        let own = "why\n\n<context ref=\"file:///w/a\">\nis this\n</context>";
        assert_eq!(without_context(own), own);
    }

    #[test]
    fn unsupported_content_is_refused_by_name() {
        let blob = json!([{"type": "resource", "resource": {"uri": "file:///x.pdf", "blob": "AA", "mimeType": "application/pdf"}}]);
        let long = json!([{"type": "text", "text": "a".repeat(MAX_PROMPT + 1)}]);
        let cases = [
            (json!([]), "the prompt is empty"),
            (
                json!([{"type": "text", "text": " \n"}]),
                "the prompt is empty",
            ),
            (
                json!([{"type": "audio", "data": "AA", "mimeType": "audio/wav"}]),
                "audio is not supported; see promptCapabilities",
            ),
            (
                blob,
                "`file:///x.pdf` is neither text nor an image; link it instead",
            ),
            (
                long,
                "the prompt has 16777217 bytes; up to 16777216 are taken",
            ),
        ];
        for (blocks, expected) in cases {
            assert_eq!(read(blocks), Err(expected.to_owned()));
        }
    }
}
