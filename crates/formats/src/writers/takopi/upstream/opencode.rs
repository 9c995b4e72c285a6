//! What takopi 0.22.3 makes of OpenCode (`runners/opencode.py`): other details of a call than for
//! Claude, the agent's own title, and as the answer all words of the run without anything between.

use model::{Event, Raw, Text, Tool};

use super::{heading as by_name, labelled, text_of};
use crate::wire::scanner;
use crate::wire::takopi as wire;
use crate::writers::takopi::tools::relative;
use crate::writers::{content, find_extra};

pub(in crate::writers::takopi) const ENGINE: &str = "opencode";

/// Characters kept of an output.
const PREVIEW: usize = 500;
/// Bytes of words kept for the answer; the rest of a longer run is not repeated at its end.
const MAX_WORDS: usize = 16 * 1024 * 1024;

/// Adds to the words that will be the answer.
pub(in crate::writers::takopi) fn push_text(answer: &mut String, text: &Text<'_>) {
    if answer.len() + text.len_bound() <= MAX_WORDS {
        answer.push_str(&text.to_str());
    }
}

pub(in crate::writers::takopi) fn heading<'t>(
    event: &'t Event<'_>,
    tool: &'t Tool<'_>,
    cwd: Option<&str>,
) -> (wire::Kind, Text<'t>) {
    let (kind, title) = by_name(tool, false, cwd);
    let kind = match kind {
        // Takopi's OpenCode runner has no kind for sub-agents.
        wire::Kind::Subagent => wire::Kind::Tool,
        kind => kind,
    };
    let path = path(tool);
    let near = || path.as_ref().map(|it| relative(it, cwd).into_owned());
    let own = find_extra(&event.extra, "title").map(|it| Text::from(it.by_ref()));
    let title = match (own.filter(|it| !it.is_empty()), &*tool.name) {
        (Some(own), _) if path.as_ref() == Some(&own) => Text::new(format!("`{own}`")),
        (Some(own), _) => own,
        (None, "edit" | "write" | "multiedit") => near().unwrap_or(title),
        (None, "read") => labelled("read", near(), "`"),
        (None, _) => title,
    };
    (kind, title)
}

pub(in crate::writers::takopi) fn detail<'t>(
    tool: &'t Tool<'_>,
    kind: wire::Kind,
) -> wire::OpenCodeDetail<'t> {
    let path = path(tool).filter(|_| kind == wire::Kind::FileChange);
    let change = |path| wire::Change {
        path,
        kind: wire::ChangeKind::Update,
    };
    let result = tool.result.as_ref().filter(|_| error(tool).is_none());
    let output = result.map(|it| content::text(&it.content));
    wire::OpenCodeDetail {
        name: &tool.name,
        input: tool.input.as_ref(),
        call_id: tool.id.as_str(),
        changes: path.map(change).into_iter().collect(),
        output_preview: output
            .map(|it| Text::new(it.to_str().chars().take(PREVIEW).collect::<String>())),
        exit_code: tool.class.exit_code,
        error: error(tool),
    }
}

/// What went wrong with a call that could not be made; one that ran and failed has an output.
pub(in crate::writers::takopi) fn error<'t>(tool: &'t Tool<'_>) -> Option<Text<'t>> {
    let result = tool.result.as_ref().filter(|it| it.is_error)?;
    let has_run = tool.class.exit_code.is_some() || tool.name == "invalid";
    (!has_run).then(|| content::text(&result.content))
}

pub(in crate::writers::takopi) fn is_ok(tool: &Tool<'_>) -> bool {
    error(tool).is_none() && tool.class.exit_code.unwrap_or_default() == 0
}

fn path<'t>(tool: &'t Tool<'_>) -> Option<Text<'t>> {
    let input = tool.input.as_ref().map_or("null", Raw::get);
    let input: wire::OpenCodeInput<'t> = scanner::from_str(input).unwrap_or_default();
    text_of(input.file_path).or_else(|| text_of(input.file_path_camel))
}
