//! Permission modes by the names that Claude Code has for them.

use runner::Mode;

const MODES: &[(&str, Mode)] = &[
    ("default", Mode::Ask),
    ("acceptEdits", Mode::AcceptEdits),
    ("plan", Mode::Plan),
    ("dontAsk", Mode::Deny),
    ("bypassPermissions", Mode::Allow),
];

/// The mode that a host names; none for those that only Claude Code has.
pub fn find(name: &str) -> Option<Mode> {
    MODES.iter().find(|it| it.0 == name).map(|it| it.1)
}

/// How a host knows a mode.
pub fn name(mode: Mode) -> &'static str {
    match MODES.iter().find(|it| it.1 == mode) {
        Some((name, _)) => name,
        // It runs the listed tools and denies everything else, as Claude Code does in `dontAsk`.
        None => "dontAsk",
    }
}

/// Every name, for people.
pub fn names() -> String {
    let names: Vec<String> = MODES.iter().map(|it| format!("`{}`", it.0)).collect();
    names.join(", ")
}
