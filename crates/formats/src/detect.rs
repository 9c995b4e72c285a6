//! Format detection from the first frames of a stream.
//!
//! Every readable format can tell whether a single frame is unmistakably its own. The first frame
//! that exactly one format claims decides; unclaimed frames (a printed warning, an empty object)
//! are skipped, up to a limit.

use model::Frame;
use serde::de::IgnoredAny;

use crate::framing::{Framer, clean};
use crate::registry::{FORMATS, Format};

/// Frames looked at; a stream whose first ones say nothing is not going to.
const MAX_FRAMES: usize = 64;
/// Bytes looked at, which the caller has to keep; recordings begin with far less.
pub const MAX_HEAD: usize = 8 * 1024 * 1024;

/// What programs keep for themselves and linkspan does not read: its name, and words that together only
/// one of its first lines holds.
const STORED: &[(&str, &[&str])] = &[
    (
        "a chat file of Qwen Code",
        &["\"parentUuid\":", "\"sessionId\":", "\"parts\":["],
    ),
    (
        "a rollout file of Codex",
        &[
            "\"timestamp\":",
            "\"type\":\"session_meta\"",
            "\"payload\":",
        ],
    ),
    (
        "a chat file of Gemini CLI",
        &["\"sessionId\":", "\"projectHash\":"],
    ),
];

/// Recognises an agent's own session files by their beginning.
pub fn stored_by(head: &[u8]) -> Option<&'static str> {
    let head = String::from_utf8_lossy(head);
    let has_all = |words: &&[&str]| words.iter().all(|it| head.contains(it));
    let found = STORED.iter().find(|(_, words)| has_all(words));
    found.map(|it| it.0)
}

/// Looks at the head of a stream, piece by piece.
#[derive(Clone, Debug, Default)]
pub struct Detector {
    framer: Framer,
    n_frames: usize,
    n_bytes: usize,
    /// There was more than white space.
    has_text: bool,
    /// The first frame began like JSON but was incomplete: a document over several lines.
    is_document: bool,
    found: Option<&'static Format>,
    /// More than one format claimed a frame.
    claimants: Vec<&'static str>,
    /// What an agent keeps for itself.
    stored: Option<&'static str>,
}

/// Why the format could not be detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DetectError {
    /// There was nothing to look at.
    Empty,
    /// A JSON document over several lines.
    Document,
    /// An agent keeps it for itself, and linkspan does not read it.
    Stored(&'static str),
    /// No format knows any of the first frames.
    Unknown,
    /// These formats all look right.
    Several(Vec<&'static str>),
}

impl Detector {
    /// Takes the next bytes; returns a result as soon as there is one.
    pub fn push(&mut self, chunk: &[u8]) -> Option<Result<&'static Format, DetectError>> {
        let mut framer = std::mem::take(&mut self.framer);
        framer.push(chunk, &mut |frame| self.frame(frame));
        self.framer = framer;
        // Only the first chunk: the words that tell a stored file stand in its first lines.
        if self.n_bytes == 0 {
            self.stored = stored_by(chunk);
        }
        self.n_bytes += chunk.len();
        self.has_text |= !chunk.trim_ascii().is_empty();
        match self.found {
            Some(format) => Some(Ok(format)),
            None if self.n_frames >= MAX_FRAMES || self.n_bytes >= MAX_HEAD => {
                Some(Err(self.error()))
            }
            None => None,
        }
    }

    /// No more bytes come.
    pub fn end(mut self) -> Result<&'static Format, DetectError> {
        let mut framer = std::mem::take(&mut self.framer);
        framer.end(&mut |frame| self.frame(frame));
        self.found.ok_or_else(|| self.error())
    }

    fn frame(&mut self, frame: Frame<'_>) {
        let Frame::Data(data) = frame else { return };
        if self.found.is_some() || self.n_frames >= MAX_FRAMES {
            return;
        }
        self.n_frames += 1;
        let text = clean(data).text;
        if self.n_frames == 1 {
            let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
            // Pretty-printed JSON is cut into lines that are no JSON.
            self.is_document = text.starts_with(['{', '[']) && !is_json;
        }
        let mut claims = FORMATS.iter().filter(|it| (it.recognises)(&text));
        // Two claims decide nothing: a later frame may be unmistakable, so the search goes on.
        match (claims.next(), claims.next()) {
            (Some(format), None) => self.found = Some(format),
            (Some(first), Some(second)) if self.claimants.is_empty() => {
                self.claimants = vec![first.name, second.name];
                self.claimants.extend(claims.map(|it| it.name));
            }
            _ => (),
        }
    }

    fn error(&self) -> DetectError {
        if !self.claimants.is_empty() {
            DetectError::Several(self.claimants.clone())
        } else if !self.has_text {
            DetectError::Empty
        } else if let Some(name) = self.stored {
            DetectError::Stored(name)
        } else if self.is_document {
            DetectError::Document
        } else {
            DetectError::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAUDE: &str = r#"{"type":"system","subtype":"init","session_id":"x"}"#;

    fn detect(text: &str, size: usize) -> Result<&'static str, DetectError> {
        let mut detector = Detector::default();
        for chunk in text.as_bytes().chunks(size) {
            if let Some(verdict) = detector.push(chunk) {
                return verdict.map(|it| it.name);
            }
        }
        detector.end().map(|it| it.name)
    }

    #[test]
    fn noise_before_the_first_frame_does_not_matter() {
        let text = format!("npm warn deprecated\n\n{{}}\n[1]\n{CLAUDE}");
        for size in [1, 7, 1000] {
            assert_eq!(detect(&text, size), Ok("claude"), "chunks of {size}");
        }
    }

    #[test]
    fn an_unknown_format_is_reported_as_unknown() {
        assert_eq!(detect("", 1), Err(DetectError::Empty));
        assert_eq!(detect("\n \n", 1), Err(DetectError::Empty));
        assert_eq!(detect("{\n  \"a\": 1\n}\n", 5), Err(DetectError::Document));
        let long = "a".repeat(MAX_HEAD);
        assert_eq!(detect(&long, 1 << 16), Err(DetectError::Unknown));
        assert_eq!(detect("{\"a\":1}\nhello\n", 3), Err(DetectError::Unknown));
        let qwen = r#"{"uuid":"u","parentUuid":null,"sessionId":"s","timestamp":"t","type":"user","message":{"role":"user","parts":[{"text":"hi"}]}}"#;
        let stored = DetectError::Stored("a chat file of Qwen Code");
        assert_eq!(detect(qwen, 1000), Err(stored));
        let late = "x\n".repeat(MAX_FRAMES) + CLAUDE;
        assert_eq!(detect(&late, 1000), Err(DetectError::Unknown));
    }

    #[test]
    fn what_two_formats_claim_is_theirs_until_another_frame_decides() {
        let result =
            r#"{"type":"result","subtype":"success","timestamp":"t","status":"ok","stats":{}}"#;
        let several = DetectError::Several(vec!["claude", "gemini"]);
        assert_eq!(detect(result, 1000), Err(several));
        assert_eq!(detect(&format!("{result}\n{CLAUDE}"), 1000), Ok("claude"));
    }
}
