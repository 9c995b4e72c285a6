//! The first look at a frame, the same for every reader of JSON.

use std::borrow::Cow;

use model::{Frame, Raw, Timestamp};

use super::lifecycle::{FrameContext, Lifecycle, MAX_KEPT};
use crate::framing::{Repair, clean};
use crate::wire::duplex;
use crate::wire::lenient::{Object, read};
use crate::wire::scanner;

/// The direction of a message; a plain stream has only the agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    FromAgent,
    ToAgent,
}

/// Takes a message out of a recording of both directions, and its time with it.
pub(super) fn unwrap<'f>(
    cx: &mut FrameContext<'_>,
    text: &'f str,
    started_at: Option<Timestamp>,
) -> &'f str {
    let Some((line, msg)) = wrapped(text) else {
        return text;
    };
    if let (Some(start), Some(t)) = (started_at, line.t.0) {
        cx.at = Some(start.plus_millis((t * 1000.0) as i64));
    }
    cx.direction = Some(direction(line.dir.as_deref()));
    msg
}

/// Only the message, for detection.
pub(crate) fn message(text: &str) -> &str {
    wrapped(text).map_or(text, |(_, msg)| msg)
}

fn wrapped(text: &str) -> Option<(duplex::Line<'_>, &str)> {
    // Most lines are not wrapped: they must not be parsed to know it.
    let first = text.trim_start_matches(['{', ' ']);
    let keys = ["\"t\"", "\"dir\"", "\"msg\""];
    if !keys.iter().any(|it| first.starts_with(it)) {
        return None;
    }
    let line: duplex::Line<'_> = scanner::from_str(text).ok()?;
    let msg = line.msg.0?.get();
    // An agent's own message may begin with `t` or `msg`; only a recorder's has a direction as
    // well.
    line.dir.as_deref().is_some().then_some((line, msg))
}

/// What a recording calls the two directions.
fn direction(dir: Option<&str>) -> Direction {
    if dir == Some("in") {
        Direction::ToAgent
    } else {
        Direction::FromAgent
    }
}

/// The frame as text; a notice reports truncation and repairs.
pub(crate) fn text<'f>(
    lifecycle: &mut Lifecycle,
    cx: &mut FrameContext<'_>,
    frame: Frame<'f>,
) -> Option<Cow<'f, str>> {
    let n = lifecycle.next_frame();
    cx.frame = Some(n);
    match frame {
        Frame::Oversized { length, head } => {
            let head = String::from_utf8_lossy(head).into_owned();
            let text = format!("line {n} is {length} bytes long and was skipped");
            lifecycle.warn(cx, "oversized_line", text, Some(Raw::of(&head)));
            None
        }
        Frame::Data(data) => {
            let cleaned = clean(data);
            match cleaned.repair {
                None => (),
                Some(Repair::InvalidUtf8) => {
                    let text = format!("line {n} is not UTF-8; the bad bytes were replaced");
                    // The bad bytes are escaped fourfold; a giant line would become a far larger
                    // notice.
                    let kept = &data[..data.len().min(MAX_KEPT)];
                    let bytes = kept.escape_ascii().to_string();
                    lifecycle.warn(cx, "invalid_utf8", text, Some(Raw::of(&bytes)));
                }
                Some(Repair::LoneSurrogate) => {
                    let text = format!("line {n} holds half a character; it was replaced");
                    lifecycle.warn(cx, "lone_surrogate", text, None);
                }
            }
            Some(cleaned.text)
        }
    }
}

/// Reads the message as the object it must be; what is none is a bad line. The fields that no rule
/// reads are kept for the first event.
pub(crate) fn is_object<'c>(
    lifecycle: &mut Lifecycle,
    cx: &mut FrameContext<'c>,
    what: &str,
    object: &mut (impl Object<'c> + Default),
) -> bool {
    let text = cx.message;
    if let Err(err) = read(text, object) {
        if !text.trim_start().starts_with(['{', '[', '"']) {
            // Words of people, not broken JSON: what a program prints before it leaves may explain
            // its end.
            lifecycle.plain_text_line(cx, text);
            return false;
        }
        lifecycle.bad_line(cx, text, &format!("not JSON: {err}"));
        return false;
    }
    if !object.is_object() {
        lifecycle.bad_line(cx, text, &format!("not {what}: no object"));
    }
    // Only what is printed after the last message can be the reason why an agent stopped.
    lifecycle.note_continued();
    cx.extra = std::mem::take(object.extra());
    object.is_object()
}
