//! Tool calls as actions and what came back as observations, by profile.
//!
//! The default wraps any tool: its input is `MCPToolAction.data`, its result the content of an
//! `MCPToolObservation`. What a consumer could not load (an input that is no object, JSON nested
//! deeper than its parser goes) leaves the action out; the input is then still in the call's
//! `arguments`.

use std::borrow::Cow;

use model::{Part, Raw, Status, Text, Tool, ToolResult};

use super::{OpenHandsProfile, native};
use crate::wire::lenient::{List, Str};
use crate::wire::openhands::{
    AcpContent, Action, Content, Observation, ObservationDetail, RejectionSource, ToolCall, Url,
};
use crate::wire::scanner;
use crate::writers::content::{self, ResultPart};

/// Levels of nesting in a payload; pydantic's JSON parser stops at 200 for the whole line.
const MAX_DEPTH: usize = 128;

pub(super) fn call<'a>(tool: &'a Tool<'_>) -> ToolCall<'a> {
    ToolCall {
        id: tool.id.as_str(),
        name: &tool.name,
        arguments: arguments(tool),
        // Required; the other value is for OpenAI's Responses API.
        origin: "completion",
    }
}

/// The input as text; of a call that was cut off, as much as there is.
fn arguments<'a>(tool: &'a Tool<'_>) -> Text<'a> {
    match &tool.input {
        Some(input) if input.is_string() => Text::from(input.by_ref()),
        Some(input) => Text::new(input.get()),
        None => Text::new("{}"),
    }
}

/// The action of a call, if a consumer can load it.
pub(super) fn action<'a>(profile: OpenHandsProfile, tool: &'a Tool<'_>) -> Option<Action<'a>> {
    let input = tool.input.as_ref()?;
    let wrapped = || {
        (input.get().starts_with('{') && is_loadable(input)).then(|| Action::MCPToolAction {
            data: input.by_ref(),
        })
    };
    match profile {
        OpenHandsProfile::Native => native::action(tool).or_else(wrapped),
        OpenHandsProfile::External => wrapped().map(|_| Action::ExternalToolAction {
            tool: &tool.name,
            args: input.by_ref(),
        }),
        OpenHandsProfile::Mcp | OpenHandsProfile::Acp | OpenHandsProfile::Message => wrapped(),
    }
}

pub(super) fn observation<'a>(
    profile: OpenHandsProfile,
    tool: &'a Tool<'_>,
    result: Option<&'a ToolResult<'_>>,
    status: Status,
) -> Observation<'a> {
    let wrapped = || ObservationDetail::MCPToolObservation {
        tool_name: &tool.name,
    };
    let is_error = status != Status::Ok || result.is_some_and(|it| it.is_error);
    let detail = match profile {
        OpenHandsProfile::Native => native::observation(tool, is_error).unwrap_or_else(wrapped),
        OpenHandsProfile::External => ObservationDetail::ExternalToolObservation {
            tool: &tool.name,
            result: result.and_then(external_result),
        },
        OpenHandsProfile::Mcp | OpenHandsProfile::Acp | OpenHandsProfile::Message => wrapped(),
    };
    let blocks = result.map_or_else(Vec::new, |it| content::blocks(&it.content));
    Observation {
        detail,
        content: blocks.into_iter().map(from_block).collect(),
        is_error,
    }
}

/// The result as it came, if it is a string or a list of objects.
fn external_result<'a>(result: &'a ToolResult<'_>) -> Option<Raw<'a>> {
    let content = &result.content;
    let is_list = || {
        let list: Vec<&serde_json::value::RawValue> = scanner::from_str(content.get()).ok()?;
        list.iter()
            .all(|it| it.get().starts_with('{'))
            .then_some(())
    };
    let is_ours = content.is_string() || is_list().is_some() && is_loadable(content);
    is_ours.then(|| content.by_ref())
}

/// Why a call was not allowed, and by whom.
pub(super) fn rejection<'a>(tool: &'a Tool<'_>) -> (Text<'a>, RejectionSource) {
    let result = tool.result.as_ref();
    let reason = result.map(|it| content::text(&it.content));
    let reason = reason.filter(|it| !it.is_empty());
    let meta = result.and_then(|it| it.meta.as_ref());
    let source = match meta.is_some_and(|it| is_by_hook(tool.id.as_str(), it)) {
        true => RejectionSource::Hook,
        false => RejectionSource::User,
    };
    let reason = reason.unwrap_or(Text::new("the call was not allowed"));
    (reason, source)
}

object! {
    /// How Claude Code allowed or denied a call; a frame lists this for all of its results.
    Meta {
        id: Str<'a> = "id",
        permission_decision: Decision<'a> = "permission_decision",
    }

    /// What the OpenHands reader keeps of a rejection.
    Rejected {
        source: Str<'a> = "rejection_source",
    }

    Decision {
        source: Str<'a> = "source",
    }
}

fn is_by_hook(id: &str, meta: &Raw<'_>) -> bool {
    let rejected: Rejected<'_> = scanner::from_str(meta.get()).unwrap_or_default();
    if rejected.source.as_deref() == Some("hook") {
        return true;
    }
    let list: List<Meta<'_>> = scanner::from_str(meta.get()).unwrap_or_default();
    let mut entries = list.0.iter().filter(|it| it.id.as_deref() == Some(id));
    entries.any(|it| it.permission_decision.source.as_deref() == Some("hook"))
}

fn from_block(block: ResultPart<'_>) -> Content<'_> {
    match block {
        ResultPart::Text(text) => Content::Text { text },
        ResultPart::Image { media_type, data } => image(Url::Data { media_type, data }),
        ResultPart::ImageUrl(url) => image(Url::Link(url)),
        ResultPart::Other(raw) => Content::Text {
            text: Text::new(raw.get().to_owned()),
        },
    }
}

pub(super) fn from_part<'a>(part: &'a Part<'_>) -> Option<Content<'a>> {
    match part {
        Part::Image { media_type, data } => Some(image(Url::Data {
            media_type: Cow::Borrowed(media_type),
            data: data.by_ref(),
        })),
        Part::ImageUrl { url } => Some(image(Url::Link(url.by_ref()))),
        Part::Other(_) => None,
    }
}

fn image(url: Url<'_>) -> Content<'_> {
    Content::Image { image_urls: [url] }
}

/// Any JSON, unless it is nested too deep; that becomes its text.
pub(super) fn loadable<'a>(raw: &'a Raw<'_>) -> Raw<'a> {
    if is_loadable(raw) {
        raw.by_ref()
    } else {
        Raw::of(&raw.get())
    }
}

fn is_loadable(raw: &Raw<'_>) -> bool {
    let json = raw.get().as_bytes();
    // Fewer brackets than levels cannot be too deep, and most payloads have few.
    if memchr::memchr2_iter(b'{', b'[', json)
        .nth(MAX_DEPTH)
        .is_none()
    {
        return true;
    }
    let (mut depth, mut is_in_string, mut is_escaped) = (0_usize, false, false);
    json.iter().all(|byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            b'{' | b'[' if !is_in_string => depth += 1,
            b'}' | b']' if !is_in_string => depth = depth.saturating_sub(1),
            _ => (),
        }
        depth <= MAX_DEPTH
    })
}

pub(super) fn acp_content<'a>(tool: &'a Tool<'_>) -> Vec<AcpContent<'a>> {
    let diffs = tool.class.diffs.iter().map(|diff| AcpContent::Diff {
        path: diff.path.by_ref(),
        old_text: diff.old.as_ref().map(Text::by_ref),
        new_text: diff.new.by_ref(),
    });
    diffs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_payloads_become_text() {
        let nested = |n: usize| Raw::parse("[".repeat(n) + &"]".repeat(n));
        assert!(is_loadable(&nested(MAX_DEPTH)));
        assert!(!is_loadable(&nested(MAX_DEPTH + 1)));
        let wide = Raw::parse(format!("[{}[]]", "[],".repeat(1000)));
        assert!(is_loadable(&wide));
        let quoted = Raw::of(&format!("\\\"{}", "[".repeat(1000)));
        assert!(is_loadable(&quoted));
        let deep = nested(200);
        assert!(loadable(&deep).is_string());
    }
}
