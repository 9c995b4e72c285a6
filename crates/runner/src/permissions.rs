//! The permission modes: one table of their names, their meaning, and what each needs on a server.
//!
//! The config, the command line, the server's checks and `docs/engines.md` are all made from it. What a
//! mode becomes for each agent is in `engines`, and how questions are answered in `policy`.

use serde::{Deserialize, Serialize};

/// What the agent may do without asking, and what happens when it asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    pub mode: Mode,
    /// The caller's list of tools that may run without a question, by the agent's own names and
    /// patterns. It replaces `allowed_tools` of the config: an empty list allows nothing, and none leaves
    /// the choice to the config.
    pub allow: Option<Vec<String>>,
    /// Tools that may not run at all, in every mode.
    pub deny: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum Mode {
    Plan,
    #[default]
    Deny,
    Ask,
    AcceptEdits,
    Listed,
    Allow,
}

/// One row of the table.
#[derive(Debug)]
pub struct ModeInfo {
    pub mode: Mode,
    pub name: &'static str,
    /// A short description for the command line help.
    pub summary: &'static str,
    /// What runs without a question, for the manual.
    pub runs: &'static str,
    /// On a server it takes the role `approve`: things run without asking. In the other modes a list of tools
    /// takes it.
    pub needs_approval: bool,
}

/// Every mode, from the one that allows least to the one that allows most.
pub const MODES: &[ModeInfo] = &[
    ModeInfo {
        mode: Mode::Plan,
        name: "plan",
        summary: "Look and plan only: change nothing, run no command",
        runs: "looking and planning; no change, no command",
        needs_approval: false,
    },
    ModeInfo {
        mode: Mode::Deny,
        name: "deny",
        summary: "Run only the tools you list; deny everything else",
        runs: "only what the caller's list names; everything else that would be asked is denied and \
               reported",
        needs_approval: false,
    },
    ModeInfo {
        mode: Mode::Ask,
        name: "ask",
        summary: "Run the tools you list; ask about everything else",
        runs: "only what the caller's list names; everything else is asked, and denied where nobody \
               can be asked",
        needs_approval: false,
    },
    ModeInfo {
        mode: Mode::AcceptEdits,
        name: "accept-edits",
        summary: "As `ask`, and also change files below the working directory",
        runs: "what `ask` runs, and changes of files below the working directory",
        needs_approval: true,
    },
    ModeInfo {
        mode: Mode::Listed,
        name: "listed",
        summary: "Run `allowed_tools` of the config, by default shell, read, edit and write; deny the rest",
        runs: "the caller's list, else `allowed_tools` of the config, which by default lets the agent \
               run commands and read, edit and write files; everything else is denied and reported",
        needs_approval: true,
    },
    ModeInfo {
        mode: Mode::Allow,
        name: "allow",
        summary: "Run everything without asking",
        runs: "everything",
        needs_approval: true,
    },
];

impl TryFrom<String> for Mode {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let unknown = || {
            format!(
                "there is no `{name}`, only `{}`",
                Self::names().join("`, `")
            )
        };
        Self::parse(&name).ok_or_else(unknown)
    }
}

impl From<Mode> for &'static str {
    fn from(mode: Mode) -> Self {
        mode.name()
    }
}

impl Mode {
    /// The mode of this name.
    pub fn parse(name: &str) -> Option<Self> {
        MODES.iter().find(|it| it.name == name).map(|it| it.mode)
    }

    pub fn info(self) -> &'static ModeInfo {
        let row = MODES.iter().find(|it| it.mode == self);
        row.expect("the table has a row for every mode")
    }

    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Every name, in the order of the table.
    pub fn names() -> Vec<&'static str> {
        MODES.iter().map(|it| it.name).collect()
    }

    /// Whether this mode requires the role `approve` on a server. `has_list`: the caller names
    /// tools that may run without asking.
    pub fn needs_approval(self, has_list: bool) -> bool {
        // A list lets tools run unasked in any mode, which only an approver may decide.
        has_list || self.info().needs_approval
    }
}

impl Permissions {
    /// Whether the caller names at least one tool that may run without a question.
    pub fn has_list(&self) -> bool {
        self.allow.as_ref().is_some_and(|it| !it.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_has_one_row_and_is_found_by_its_name() {
        let all = [
            (Mode::Plan, "plan", false, true),
            (Mode::Deny, "deny", false, true),
            (Mode::Ask, "ask", false, true),
            (Mode::AcceptEdits, "accept-edits", true, true),
            (Mode::Listed, "listed", true, true),
            (Mode::Allow, "allow", true, true),
        ];
        assert_eq!(MODES.len(), all.len());
        for (mode, name, bare, with_list) in all {
            assert_eq!(mode.name(), name);
            assert_eq!(Mode::parse(name), Some(mode));
            assert_eq!(mode.needs_approval(false), bare, "{name}");
            assert_eq!(mode.needs_approval(true), with_list, "{name}");
        }
        assert_eq!(Mode::parse("yolo"), None);
        assert_eq!(Mode::names(), all.map(|it| it.1));
    }
}
