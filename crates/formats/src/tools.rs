//! What a tool call means: one place that turns a name and an input into a kind, a title and facts.
//!
//! Covers the tools of Claude Code, Codex, OpenCode, Gemini and OpenHands, and MCP names. Writers
//! take what they show from here and never look at names themselves. An unknown tool is
//! [`ToolKind::Other`], with its name as the title.

mod approval;
mod commands;
mod input;
mod kinds;
mod patches;
mod repeats;
#[cfg(test)]
mod tests;
mod titles;

use std::borrow::Cow;

use model::{Change, Class, ItemId, Mcp, Raw, Text, Tool, ToolKind};

pub(crate) use self::approval::approval_title;
use self::input::text;
pub(crate) use self::input::{FileChanges, ToolInput};

/// Classifies a call; `cwd` shortens the paths in the title.
pub(crate) fn classify<'a>(name: &str, input: Option<&Raw<'a>>, cwd: Option<&str>) -> Class<'a> {
    let input = input.and_then(ToolInput::parse).unwrap_or_default();
    classify_fields(name, &input, cwd)
}

/// A call, classified; `cwd` shortens the paths in the title.
pub(crate) fn call<'a>(
    id: ItemId<'a>,
    name: impl Into<Cow<'a, str>>,
    input: Option<Raw<'a>>,
    cwd: Option<&str>,
) -> Tool<'a> {
    let name = name.into();
    let class = classify(&name, input.as_ref(), cwd);
    Tool {
        input,
        ..Tool::new(id, name, class)
    }
}

/// Classifies a call whose input is spread over the fields of a larger object.
pub(crate) fn classify_fields<'a>(
    name: &str,
    input: &ToolInput<'a>,
    cwd: Option<&str>,
) -> Class<'a> {
    if let Some((server, tool)) = kinds::mcp_name(name) {
        let mut class = Class::plain(ToolKind::Mcp, Text::new(tool.to_owned()));
        class.mcp = Some(Mcp {
            server: Cow::Owned(server.to_owned()),
            tool: Cow::Owned(tool.to_owned()),
        });
        return class;
    }
    let mut class = facts(kinds::kind(name, input), input);
    let title = titles::title(name, &class, input, cwd);
    class.title = title.unwrap_or_else(|| titles::fallback_title(name));
    repeats::shorten(&mut class);
    class
}

/// What the input of a call of this kind says, without a title.
fn facts<'a>(kind: ToolKind, input: &ToolInput<'a>) -> Class<'a> {
    let mut class = Class::plain(kind, Text::EMPTY);
    class.paths = input::locations(kind, input);
    class.diffs = input::diffs(kind, input);
    class.change = patches::one_change(&input.changes.0);
    if matches!(kind, ToolKind::Write | ToolKind::Edit) && input.create.is_true() {
        class.change = Some(Change::Add);
    }
    if kind == ToolKind::Shell {
        class.command = input.command().map(commands::line);
    } else if kind == ToolKind::Search {
        class.query = text(input.pattern).or(text(input.query));
    } else if kind == ToolKind::Fetch {
        // Gemini's fetch has its addresses in the words of a prompt.
        class.query = text(input.url).or(text(input.prompt).map(address_in));
    } else if kind == ToolKind::WebSearch {
        class.query = text(input.query);
    }
    class
}

/// Classifies a call that an agent has described itself, as agents do over ACP: the tool's name may
/// be missing, the kind is one of ACP's, and the title is the agent's own.
pub(crate) fn classify_acp<'a>(
    name: Option<&str>,
    kind: Option<&str>,
    title: Option<Text<'a>>,
    input: Option<&Raw<'a>>,
    cwd: Option<&str>,
) -> Class<'a> {
    let named = name.map(|it| classify(it, input, cwd));
    let mut class = match named {
        // A known name is more exact than one of ACP's ten kinds.
        Some(class) if class.kind != ToolKind::Other => class,
        named => {
            let stand_in = match kind {
                Some("other") | None => "",
                // The kinds of ACP are names that are known here.
                Some(kind) => kind,
            };
            match named {
                Some(class) if stand_in.is_empty() => class,
                Some(_) | None => classify(stand_in, input, cwd),
            }
        }
    };
    if let Some(title) = input::filled(title) {
        class.title = title;
    }
    class
}

/// What a tool of this name does, as far as the name alone tells.
pub(crate) fn kind_of(name: &str) -> ToolKind {
    kinds::kind(name, &ToolInput::default())
}

/// The exit code in a shell's error text: `Exit code N` at its start.
pub(crate) fn exit_code(text: &str) -> Option<i32> {
    let digits = text.strip_prefix("Exit code ")?;
    let end = digits
        .find(|it: char| !it.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// The first address in a text, or the text when there is none.
fn address_in(text: Text<'_>) -> Text<'_> {
    let words = text.to_str();
    let mut words = words.split_whitespace();
    match words.find(|it| it.starts_with("http://") || it.starts_with("https://")) {
        Some(address) => Text::new(address.to_owned()),
        None => text,
    }
}
