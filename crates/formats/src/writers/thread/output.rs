//! What tools print, in the size a log can bear.
//!
//! On a server, an output that is cut names its length and a link to all of it, and an image is a
//! link: clients with a small screen fetch what they want to show.

use std::borrow::Cow;

use model::{Losses, Raw, Text, ToolResult};

use crate::wire::lenient::Any;
use crate::wire::scanner;
use crate::wire::thread as wire;
use crate::writers::ServedThread;
use crate::writers::content::{ResultPart, blocks, joined};

/// Longer outputs are cut: a consumer keeps these lines in memory and shows a screen of them.
pub(super) const MAX_OUTPUT: usize = 64 * 1024;

/// How much of an output is written, and where the rest is.
#[derive(Clone, Debug, Default)]
pub(super) struct Outputs {
    /// Bytes; none writes all.
    max: Option<usize>,
    /// The address of the server, where one writes.
    base: Option<String>,
}

/// The event that holds an output.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputSource<'a> {
    pub(super) session: &'a str,
    pub(super) item: &'a str,
    pub(super) seq: u64,
}

/// An output as it is written.
#[derive(Debug, Default, PartialEq)]
pub(super) struct OutputText<'a> {
    pub(super) text: Text<'a>,
    pub(super) more: wire::More,
}

impl Outputs {
    pub(super) fn new(is_full: bool, served: Option<&ServedThread>) -> Self {
        let max = served.map_or(Some(MAX_OUTPUT), |it| it.max_output);
        Self {
            max: max.filter(|_| !is_full),
            base: served.map(|it| it.base.clone()),
        }
    }

    /// True when commands of Codex itself are cut like all others.
    pub(super) fn cuts_own(&self) -> bool {
        self.base.is_some()
    }

    /// All of a result, as text.
    pub(super) fn text<'a>(
        &self,
        result: &'a ToolResult<'_>,
        source: Option<OutputSource<'_>>,
        losses: &mut Losses,
    ) -> OutputText<'a> {
        if result.content.is_string() {
            return self.cut(Text::from(result.content.by_ref()), source);
        }
        let mut attachments = Vec::new();
        let parts =
            (blocks(&result.content).into_iter().enumerate()).map(|(at, block)| match block {
                ResultPart::Text(text) => text,
                ResultPart::Image { media_type, data } => {
                    // A file has no link to offer, and base64 would fill the log.
                    let Some(url) = self.picture(source, at) else {
                        losses.count("image");
                        let n_chars = data.len_bound();
                        return Text::new(format!("[{media_type}, {n_chars} bytes of base64]"));
                    };
                    let bytes = decoded_len(&data.to_str());
                    let text = Text::new(format!("[{media_type}, {bytes} bytes: {url}]"));
                    let media_type = media_type.into_owned();
                    attachments.push(wire::Attachment {
                        media_type,
                        bytes,
                        url,
                    });
                    text
                }
                ResultPart::ImageUrl(url) => url,
                ResultPart::Other(raw) => Text::new(raw.get().to_owned()),
            });
        let Some(text) = joined(parts, "\n") else {
            return OutputText::default();
        };
        let mut written = self.cut(text, source);
        written.more.attachments = attachments;
        written
    }

    /// The text, or its beginning and its length in bytes. Not decoded unless it may be too long.
    pub(super) fn cut<'a>(
        &self,
        text: Text<'a>,
        source: Option<OutputSource<'_>>,
    ) -> OutputText<'a> {
        let max = self.max.unwrap_or(usize::MAX);
        let all = |text| OutputText {
            text,
            more: wire::More::default(),
        };
        // The length as JSON is never shorter than the text, and needs no decoding.
        if text.len_bound() <= max {
            return all(text);
        }
        let whole = text.to_str();
        if whole.len() <= max {
            // It borrows the text that is returned.
            drop(whole);
            return all(text);
        }
        let head = &whole[..whole.floor_char_boundary(max)];
        let n_bytes = whole.len();
        let url = self.output(source);
        let text = match &url {
            Some(url) => format!("{head}… [{n_bytes} bytes, all of it: {url}]"),
            None => format!("{head}… [{n_bytes} bytes]"),
        };
        OutputText {
            text: Text::new(text),
            more: wire::More {
                // Without a server there is nowhere to fetch the rest from.
                output_bytes: url.is_some().then_some(n_bytes),
                output_url: url,
                attachments: Vec::new(),
            },
        }
    }

    /// A result in the blocks of the Model Context Protocol.
    pub(super) fn mcp_result<'a>(
        &self,
        result: &'a ToolResult<'_>,
        source: Option<OutputSource<'_>>,
    ) -> wire::McpResult<'a> {
        let blocks = blocks(&result.content).into_iter().enumerate();
        let content = blocks.map(|(at, block)| match block {
            ResultPart::Text(text) => wire::McpContent::Text {
                text: self.cut(text, source).text,
            },
            ResultPart::Image { media_type, data } => match self.picture(source, at) {
                Some(url) => wire::McpContent::ResourceLink {
                    uri: Text::new(url),
                    name: "image",
                    mime_type: Some(media_type),
                },
                None => wire::McpContent::Image {
                    data,
                    mime_type: media_type,
                },
            },
            ResultPart::ImageUrl(uri) => wire::McpContent::ResourceLink {
                uri,
                name: "image",
                mime_type: None,
            },
            ResultPart::Other(raw) => wire::McpContent::Other(raw),
        });
        let mut content: Vec<_> = content.collect();
        let mut structured_content = result.structured.as_ref().and_then(structured);
        let n_bytes = structured_content.as_ref().map_or(0, |it| it.get().len());
        // Truncated JSON is useless.
        if n_bytes > self.max.unwrap_or(usize::MAX)
            && let Some(url) = self.output(source)
        {
            structured_content = None;
            let text = format!("[structured content, {n_bytes} bytes: {url}&part=structured]");
            content.push(wire::McpContent::Text {
                text: Text::new(text),
            });
        }
        wire::McpResult {
            content,
            structured_content,
        }
    }

    /// Where a server shows a file of the session.
    pub(super) fn file(&self, session: &str, path: &Text<'_>) -> Option<String> {
        let base = self.base.as_deref()?;
        let session = encoded(session);
        let path = path.to_str();
        Some(format!(
            "{base}/api/sessions/{session}/file?path={}",
            encoded(&path)
        ))
    }

    fn output(&self, source: Option<OutputSource<'_>>) -> Option<String> {
        let (base, source) = (self.base.as_deref()?, source?);
        let (session, item) = (encoded(source.session), encoded(source.item));
        let seq = source.seq;
        Some(format!(
            "{base}/api/sessions/{session}/items/{item}/output?at={seq}"
        ))
    }

    fn picture(&self, source: Option<OutputSource<'_>>, block: usize) -> Option<String> {
        Some(format!("{}&block={block}", self.output(source)?))
    }
}

/// A part of an address, with everything escaped that means something in one.
pub(super) fn encoded(text: &str) -> Cow<'_, str> {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"-._~".contains(&it);
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() * 3);
    for byte in text.bytes() {
        match is_plain(byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Cow::Owned(out)
}

/// How many bytes a text in base64 decodes to.
fn decoded_len(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

object! {
    McpStructured {
        structured_content: Any<'a> = "structuredContent",
        content: Any<'a> = "content",
    }
}

/// The structured content proper: some agents keep it beside the content, some by itself.
fn structured<'a>(raw: &'a Raw<'_>) -> Option<Raw<'a>> {
    let object: McpStructured<'a> = scanner::from_str(raw.get()).ok()?;
    match (object.structured_content.raw(), object.content.0) {
        (Some(raw), _) => Some(raw),
        (None, None) if object.is_object => Some(raw.by_ref()),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capped(text: Text<'_>) -> Text<'_> {
        Outputs::new(false, None).cut(text, None).text
    }

    #[test]
    fn short_output_is_not_decoded() {
        let raw: Raw<'_> = serde_json::from_str(r#""a\u0041""#).unwrap();
        let json = serde_json::to_string(&capped(Text::from(raw))).unwrap();
        assert_eq!(json, r#""a\u0041""#);
    }

    #[test]
    fn escapes_do_not_count_towards_the_limit() {
        let json = format!("\"{}\"", "\\n".repeat(MAX_OUTPUT));
        let raw: Raw<'_> = serde_json::from_str(&json).unwrap();
        assert_eq!(capped(Text::from(raw)).to_str().len(), MAX_OUTPUT);
    }

    #[test]
    fn long_output_is_cut_between_characters() {
        let text = format!("a{}", "é".repeat(MAX_OUTPUT));
        let cut = capped(Text::new(text));
        let head = format!("a{}", "é".repeat(MAX_OUTPUT / 2 - 1));
        let expected = format!("{head}… [{} bytes]", 1 + 2 * MAX_OUTPUT);
        assert_eq!(cut.to_str(), expected);
    }

    #[test]
    fn the_full_profile_cuts_nothing() {
        let text = "x".repeat(MAX_OUTPUT * 2);
        let written = Outputs::new(true, None).cut(Text::new(&*text), None);
        assert_eq!(written.text.to_str(), text);
    }

    #[test]
    fn addresses_have_nothing_in_them_that_ends_a_part() {
        assert_eq!(encoded("toolu_01-a.b~c"), "toolu_01-a.b~c");
        assert_eq!(encoded("a/b?c#d é"), "a%2Fb%3Fc%23d%20%C3%A9");
    }

    #[test]
    fn base64_is_counted_as_what_it_stands_for() {
        for (text, n_bytes) in [
            ("", 0),
            ("TQ==", 1),
            ("TWE=", 2),
            ("TWFu", 3),
            ("TWFuTQ==", 4),
        ] {
            assert_eq!(decoded_len(text), n_bytes, "{text}");
        }
    }
}
