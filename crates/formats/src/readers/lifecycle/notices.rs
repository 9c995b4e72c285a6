//! Events beside a run's items: notices, bad lines, and frames that no rule knows.

use std::borrow::Cow;

use model::{Body, Level, Notice, Origin, Raw, Text, Unmapped};
use serde_json::value::RawValue;

use super::{FrameContext, Lifecycle};

/// Bytes shown of a line that is no message; the whole is in the notice's detail.
const MAX_SHOWN: usize = 200;
/// Bytes kept of a line that is no message: what it was is seen in far less, and a giant one would be copied
/// again and again on its way.
pub(crate) const MAX_KEPT: usize = 1 << 20;
/// Bytes kept of what an agent prints before it leaves.
const MAX_LAST_WORDS: usize = 2048;

impl Lifecycle {
    pub(crate) fn notice(&mut self, cx: &mut FrameContext<'_>, notice: Notice<'_>) {
        self.emit(cx, Body::NoticeRaised(notice));
    }

    /// A notice without more than its words.
    pub(crate) fn raise<'t>(
        &mut self,
        cx: &mut FrameContext<'_>,
        level: Level,
        code: &'static str,
        text: impl Into<Text<'t>>,
    ) {
        self.notice(cx, Notice::new(level, code, text.into()));
    }

    /// A notice that keeps the whole message.
    pub(crate) fn raise_with_message<'t>(
        &mut self,
        cx: &mut FrameContext<'_>,
        level: Level,
        code: &'static str,
        text: impl Into<Text<'t>>,
    ) {
        let message = cx.message;
        self.raise_with(cx, level, code, text.into(), message);
    }

    /// A notice that keeps a part of the message, which has all that no rule reads.
    pub(crate) fn raise_with(
        &mut self,
        cx: &mut FrameContext<'_>,
        level: Level,
        code: &'static str,
        text: Text<'_>,
        json: &str,
    ) {
        // The detail has all fields of the frame: kept twice they would double a long line.
        cx.extra.clear();
        let notice = Notice {
            detail: Some(raw(json)),
            ..Notice::new(level, code, text)
        };
        self.notice(cx, notice);
    }

    /// A warning of linkspan's own about the input.
    pub(crate) fn warn(
        &mut self,
        cx: &mut FrameContext<'_>,
        code: &'static str,
        text: String,
        detail: Option<Raw<'_>>,
    ) {
        let origin = std::mem::replace(&mut cx.origin, Origin::Linkspan);
        let notice = Notice {
            detail,
            ..Notice::new(Level::Warning, code, Text::new(text))
        };
        self.notice(cx, notice);
        cx.origin = origin;
    }

    /// A line that is not what the format says; its text is kept.
    pub(crate) fn bad_line(&mut self, cx: &mut FrameContext<'_>, text: &str, why: &str) {
        let kept = &text[..text.floor_char_boundary(MAX_KEPT)];
        let why = match text.len() - kept.len() {
            0 => why.to_owned(),
            n_left_out => format!("{why}; {n_left_out} of its bytes are left out"),
        };
        self.warn(cx, "bad_line", why, Some(Raw::of(&kept)));
    }

    /// A line of plain words where a message should be: what a program says before it leaves.
    pub(crate) fn plain_text_line(&mut self, cx: &mut FrameContext<'_>, text: &str) {
        let words = text.trim();
        let start = words.floor_char_boundary(MAX_SHOWN);
        let cut = if start < words.len() { "…" } else { "" };
        let why = format!("not JSON: {}{cut}", &words[..start]);
        self.bad_line(cx, text, &why);
        let last = self.last_words.get_or_insert_default();
        // One byte is for the line end between two lines.
        let room = MAX_LAST_WORDS.saturating_sub(last.len() + 1);
        if room > 0 {
            if !last.is_empty() {
                last.push('\n');
            }
            last.push_str(&words[..words.floor_char_boundary(room)]);
        }
    }

    /// A message has come: the words before it were not the last.
    pub(crate) fn note_continued(&mut self) {
        self.last_words = None;
    }

    /// A frame that comes after the end of its run. It changes nothing of the run; it is kept, once.
    pub(crate) fn after_end(&mut self, cx: &mut FrameContext<'_>) {
        if !cx.message.is_empty() && !std::mem::replace(&mut cx.is_kept, true) {
            let text = "a line after the end of the run";
            self.raise_with_message(cx, Level::Debug, "after_end", text);
        }
    }

    /// A frame that no rule knows; its bytes are kept.
    pub(crate) fn unmapped(
        &mut self,
        cx: &mut FrameContext<'_>,
        what: impl Into<Cow<'static, str>>,
    ) {
        let message = cx.message;
        self.unmapped_part(cx, what, message);
    }

    /// The same for a part of a frame.
    pub(crate) fn unmapped_part(
        &mut self,
        cx: &mut FrameContext<'_>,
        what: impl Into<Cow<'static, str>>,
        json: &str,
    ) {
        // As above: the raw bytes hold every field.
        cx.extra.clear();
        let unmapped = Unmapped {
            what: what.into(),
            raw: raw(json),
        };
        self.emit(cx, Body::FrameUnmapped(unmapped));
    }

    /// The frame produced no event, but it may have unconsumed fields.
    pub(crate) fn unread(&mut self, cx: &mut FrameContext<'_>) {
        if !cx.extra.is_empty() {
            self.raise(cx, Level::Debug, "unread", "fields nobody reads");
        }
    }
}

/// A frame, or a part of one, as it came.
pub(crate) fn raw(json: &str) -> Raw<'_> {
    // What is no JSON on its own, as a line of plain text, is kept as a string.
    serde_json::from_str::<&RawValue>(json).map_or_else(|_| Raw::of(&json), Raw::borrowed)
}
