//! What is tried with each agent, and what an agent cannot do, with the reason.
//!
//! `docs/engines.md` shows the same table; a test of the fast tier compares them.

/// One row: a behaviour, and how each agent of [`ENGINES`] stands to it.
#[derive(Debug)]
pub(crate) struct Behaviour {
    pub(crate) name: &'static str,
    pub(crate) cells: [Cell; 5],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Yes,
    /// Not possible, and why.
    Never(&'static str),
}

/// The columns.
pub(crate) const ENGINES: [&str; 5] = ["claude", "codex", "opencode", "gemini", "openhands"];

const fn all(name: &'static str) -> Behaviour {
    Behaviour {
        name,
        cells: [Cell::Yes; 5],
    }
}

const fn keys(name: &'static str) -> Behaviour {
    let by_settings = Cell::Never("its own settings say which key it uses");
    let no_login = Cell::Never("it has no login that a key could replace");
    Behaviour {
        name,
        cells: [Cell::Yes, Cell::Yes, by_settings, by_settings, no_login],
    }
}

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    all("a text"),
    all("a text, talked with"),
    keys("nothing but a key"),
    keys("nothing but a key, talked with"),
    all("a prompt that begins with a dash"),
    all("a prompt in many scripts"),
    Behaviour {
        name: "a prompt of a megabyte",
        cells: [
            Cell::Yes,
            Cell::Yes,
            Cell::Yes,
            Cell::Never(
                "it repeats the prompt and may leave before that is read; talked with it works",
            ),
            Cell::Yes,
        ],
    },
    all("a prompt of a megabyte, talked with"),
    all("tools"),
    all("a tool that fails"),
    all("a permission is asked for and given"),
    all("a permission is asked for and refused"),
    all("everything is allowed"),
    all("nothing is allowed"),
    all("every permission mode"),
    all("every permission mode that asks, talked with"),
    all("a session is resumed"),
    all("a session is resumed, talked with"),
    Behaviour {
        name: "a session is forked",
        cells: [
            Cell::Yes,
            Cell::Yes,
            Cell::Yes,
            Cell::Never("Gemini CLI has no such thing"),
            Cell::Yes,
        ],
    },
    all("the newest session is continued"),
    all("a session that does not exist"),
    all("a session that does not exist, talked with"),
    all("an abort before the first word"),
    all("an abort before the first word, talked with"),
    all("an abort during a text"),
    all("an abort during a text, talked with"),
    all("an abort during a tool"),
    all("an abort during a tool, talked with"),
    all("an abort during a question"),
    all("a second Ctrl-C"),
    all("a killed agent, and the next prompt"),
    all("a killed agent, talked with, and the next prompt"),
    all("a bad request"),
    all("a bad request, talked with"),
    all("a key that is refused"),
    all("an overloaded model that recovers"),
    all("a model that fails for good"),
    all("an answer that breaks off"),
];
