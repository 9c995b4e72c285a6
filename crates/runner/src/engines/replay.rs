//! Recordings that are played as if an agent ran: bundled ones, and the user's own files.

use std::path::PathBuf;

use crate::nearest;

/// A recording that comes with the program, so that everything works with no agent installed.
#[derive(Debug, PartialEq, Eq)]
pub struct BundledReplay {
    pub name: &'static str,
    pub summary: &'static str,
    /// The format of the bytes.
    pub format: &'static str,
    pub bytes: &'static [u8],
}

pub const REPLAYS: &[BundledReplay] = &[
    BundledReplay {
        name: "tools",
        summary: "Claude Code runs a command, writes and edits a file",
        format: "claude",
        bytes: include_bytes!("../../replays/tools.jsonl"),
    },
    BundledReplay {
        name: "approval",
        summary: "Claude Code asks before it writes a file and runs a command",
        format: "claude",
        bytes: include_bytes!("../../replays/approval.jsonl"),
    },
    BundledReplay {
        name: "subagents",
        summary: "Claude Code hands work to a sub-agent",
        format: "claude",
        bytes: include_bytes!("../../replays/subagents.jsonl"),
    },
    BundledReplay {
        name: "failure",
        summary: "Claude Code meets an error of the model server",
        format: "claude",
        bytes: include_bytes!("../../replays/failure.jsonl"),
    },
];

/// What `replay:VALUE` plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recording {
    Bundled(&'static BundledReplay),
    File(PathBuf),
}

impl Recording {
    /// A bundled one by its name; anything else is a file, as is a name with `./` before it.
    pub fn new(value: &str) -> Self {
        match REPLAYS.iter().find(|it| it.name == value) {
            // It wins over a file of that name, so that it means the same in every folder.
            Some(replay) => Self::Bundled(replay),
            None => Self::File(value.into()),
        }
    }

    /// What to do when there is no such recording: the bundled ones, and the one that was probably meant.
    pub fn offer(&self) -> String {
        let names: Vec<String> = REPLAYS
            .iter()
            .map(|it| format!("replay:{}", it.name))
            .collect();
        let all = format!(
            "recordings: {}, or `replay:FILE` with the path of one",
            names.join(", ")
        );
        let meant = match self {
            Self::Bundled(_) => None,
            Self::File(path) => path
                .to_str()
                .and_then(|it| nearest(it, REPLAYS.iter().map(|it| it.name))),
        };
        match meant {
            Some(it) => format!("did you mean `replay:{it}`? {all}"),
            None => all,
        }
    }
}
