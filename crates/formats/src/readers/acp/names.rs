//! The name of a tool, where an agent says it without a field for it.
//!
//! Version 1 of the protocol has no name for tools in its stable form, only ten kinds. OpenCode
//! introduces a call with its name as the title, Copilot and Vibe put it in front (`bash: ls`), the
//! Gemini CLI begins the call's id with it, others use `_meta`. Lists of permissions name tools, so
//! a name is only taken where it agrees with the kind that the agent gave: words that happen to
//! look like a name must not open a door.

use std::borrow::Cow;

use model::ToolKind;

use super::wire::Meta;
use crate::tools;

/// Longer words are not names.
const MAX_NAME: usize = 64;

impl<'c> Meta<'c> {
    /// The tool's name, of an adapter that says it.
    pub(super) fn take_tool_name(&mut self) -> Option<Cow<'c, str>> {
        let name = self.claude_code.tool_name.take();
        let name = name.or(self.tool_name.take());
        name.filter(|it| !it.trim().is_empty())
    }
}

/// The name that a call's title or its id begins with.
pub(super) fn find(id: &str, title: Option<&str>, kind: Option<&str>) -> Option<String> {
    let title = title.unwrap_or_default().trim();
    let head = title.split_once(": ").map(|(head, _)| head);
    let of_id = id.split_once("__").or(id.split_once('-'));
    // In order of trust: a title that is nothing but a name, one that begins with it, then the id.
    let candidates = [Some(title), head, of_id.map(|(head, _)| head)];
    let name = candidates
        .into_iter()
        .flatten()
        .find(|it| is_name(it, kind));
    name.map(str::to_owned)
}

fn is_name(word: &str, kind: Option<&str>) -> bool {
    let is_word = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    if word.is_empty() || word.len() > MAX_NAME || !word.bytes().all(is_word) {
        return false;
    }
    let is_known = |kinds: &[ToolKind]| kinds.contains(&tools::kind_of(word));
    match kind {
        Some("execute") => is_known(&[ToolKind::Shell]),
        Some("read") => is_known(&[ToolKind::Read, ToolKind::Search]),
        Some("edit") => is_known(&[ToolKind::Edit, ToolKind::Write]),
        Some("delete") => is_known(&[ToolKind::Delete]),
        Some("move") => is_known(&[ToolKind::Move]),
        Some("search") => is_known(&[ToolKind::Search]),
        Some("fetch") => is_known(&[ToolKind::Fetch, ToolKind::WebSearch]),
        Some("think") => is_known(&[ToolKind::Think, ToolKind::Task, ToolKind::Todo]),
        Some("switch_mode") => is_known(&[ToolKind::Mode]),
        // Without a kind only names are taken of tools that neither run commands nor change files.
        Some(_) | None => is_known(&[ToolKind::Todo, ToolKind::Task, ToolKind::Ask]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_agents_put_them() {
        let check = |id: &str, title: &str, kind: &str, name: Option<&str>| {
            let found = find(id, Some(title), Some(kind));
            assert_eq!(found.as_deref(), name, "{id} {title} {kind}");
        };
        check("call_1", "bash", "execute", Some("bash"));
        check("call_1", "bash: touch made.txt", "execute", Some("bash"));
        check(
            "write_file__fc0138",
            "Writing to a",
            "edit",
            Some("write_file"),
        );
        check(
            "run_shell_command-17-3",
            "touch z",
            "execute",
            Some("run_shell_command"),
        );
        check("call_1", "todowrite", "other", Some("todowrite"));
        check("call_1", "touch z && echo ok", "execute", None);
        check("call_1", "Shell", "execute", Some("Shell"));
        // The kind decides what a call is allowed to be called.
        check("call_1", "read: /etc/passwd", "execute", None);
        check("call_1", "bash: ls", "other", None);
        check("call_1", "bash", "read", None);
        check("read-1", "x", "other", None);
    }
}
