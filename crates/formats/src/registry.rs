//! The one table of formats: what can be read, what can be written, and in which shapes.

use model::{Reader, Writer};

use crate::framing::Framing;
use crate::readers::{self, ReaderConfig};
use crate::writers::page_transcript::PageTranscript;
use crate::writers::{self, WriterConfig};

pub type NewReader = fn(&ReaderConfig) -> Box<dyn Reader>;
pub type NewWriter = fn(&WriterConfig) -> Box<dyn Writer>;

/// One format: a name, and a machine for each direction it goes.
#[derive(Debug)]
pub struct Format {
    pub name: &'static str,
    pub summary: &'static str,
    pub framing: Framing,
    pub reader: Option<NewReader>,
    /// True when a frame can only be of this format.
    pub recognises: fn(&str) -> bool,
    pub writer: Option<NewWriter>,
    /// The shapes a writer offers besides its default.
    pub profiles: &'static [ProfileInfo],
}

#[derive(Debug)]
pub struct ProfileInfo {
    pub name: &'static str,
    pub summary: &'static str,
}

/// Every format, in the order they are listed for people.
pub const FORMATS: &[Format] = &[
    Format {
        name: "claude",
        summary: "Claude Code stream-json",
        framing: Framing::Lines,
        reader: Some(|config| Box::new(readers::claude::Claude::new(config))),
        recognises: readers::claude::recognises,
        writer: None,
        profiles: &[],
    },
    Format {
        name: "codex",
        summary: "Codex ThreadEvents, and the app server's messages",
        framing: Framing::Lines,
        reader: Some(|config| Box::new(readers::codex::Codex::new(config))),
        recognises: readers::codex::recognises,
        writer: None,
        profiles: &[],
    },
    Format {
        name: "opencode",
        summary: "OpenCode run JSON lines, or server events",
        framing: Framing::Either,
        reader: Some(|config| Box::new(readers::opencode::OpenCode::new(config))),
        recognises: readers::opencode::recognises,
        writer: None,
        profiles: &[],
    },
    Format {
        name: "gemini",
        summary: "Gemini CLI stream-json",
        framing: Framing::Lines,
        reader: Some(|config| Box::new(readers::gemini::Gemini::new(config))),
        recognises: readers::gemini::recognises,
        writer: None,
        profiles: &[],
    },
    Format {
        name: "openresponses",
        summary: "Open Responses events, SSE or JSON lines",
        framing: Framing::Either,
        reader: Some(|config| Box::new(readers::openresponses::OpenResponses::new(config))),
        recognises: readers::openresponses::recognises,
        writer: None,
        profiles: &[],
    },
    Format {
        name: "takopi",
        summary: "Takopi events, JSON lines",
        framing: Framing::Lines,
        reader: None,
        recognises: never,
        writer: Some(|config| Box::new(writers::takopi::Takopi::new(config))),
        profiles: &[
            ProfileInfo {
                name: "upstream",
                summary: "the field names and habits of takopi 0.22.3",
            },
            ProfileInfo {
                name: "debug",
                summary: "more notes: tools, servers, plans, unknown frames",
            },
        ],
    },
    Format {
        name: "thread",
        summary: "Codex ThreadEvents, JSON lines",
        framing: Framing::Lines,
        reader: None,
        recognises: never,
        writer: Some(|config| Box::new(writers::thread::Thread::new(config))),
        profiles: &[
            ProfileInfo {
                name: "seed",
                summary: "every tool call is a command named by its tool",
            },
            ProfileInfo {
                name: "full",
                summary: "no output is cut",
            },
        ],
    },
    Format {
        name: "openhands",
        summary: "OpenHands events, JSON lines",
        framing: Framing::Lines,
        reader: Some(|config| Box::new(readers::openhands::OpenHands::new(config))),
        recognises: readers::openhands::recognises,
        writer: Some(|config| Box::new(writers::openhands::OpenHands::new(config))),
        profiles: &[
            ProfileInfo {
                name: "external",
                summary: "tools as ExternalToolAction and ExternalToolObservation",
            },
            ProfileInfo {
                name: "native",
                summary: "tools as the actions of openhands-tools, where there is one",
            },
            ProfileInfo {
                name: "acp",
                summary: "tools as ACP cards, and a closing FinishAction",
            },
            ProfileInfo {
                name: "message",
                summary: "one message per turn",
            },
        ],
    },
    Format {
        name: "acp",
        summary: "Agent Client Protocol v1, JSON-RPC lines",
        framing: Framing::Lines,
        reader: Some(|config| Box::new(readers::acp::Acp::new(config))),
        recognises: readers::acp::recognises,
        writer: Some(|config| Box::new(writers::acp::Acp::new(config))),
        profiles: &[ProfileInfo {
            name: "seed",
            summary: "as the OpenHands CLI: reasoning as message, calls pending",
        }],
    },
    Format {
        name: "ag-ui",
        summary: "AG-UI 1.0, server-sent events",
        framing: Framing::Either,
        reader: Some(|config| Box::new(readers::ag_ui::AgUi::new(config))),
        recognises: readers::ag_ui::recognises,
        writer: Some(|config| Box::new(writers::ag_ui::AgUi::new(config))),
        profiles: &[ProfileInfo {
            name: "thinking",
            summary: "for clients before 0.0.45: THINKING_* events, no sub-agents",
        }],
    },
    Format {
        name: "linkspan",
        summary: "canonical events, JSON lines",
        framing: Framing::Lines,
        reader: Some(|config| Box::new(readers::linkspan::Linkspan::new(config))),
        recognises: readers::linkspan::recognises,
        writer: Some(|_| Box::<writers::linkspan::Linkspan>::default()),
        profiles: &[],
    },
    Format {
        name: "text",
        summary: "a transcript for the terminal",
        framing: Framing::Lines,
        reader: None,
        recognises: never,
        writer: Some(|config| Box::new(writers::text::Transcript::new(config))),
        profiles: &[],
    },
    Format {
        name: "markdown",
        summary: "a transcript as Markdown",
        framing: Framing::Lines,
        reader: None,
        recognises: never,
        writer: Some(|config| Box::new(PageTranscript::new(writers::markdown::Markdown, config))),
        profiles: &[],
    },
    Format {
        name: "html",
        summary: "a transcript as one web page",
        framing: Framing::Lines,
        reader: None,
        recognises: never,
        writer: Some(|config| Box::new(PageTranscript::new(writers::html::Html, config))),
        profiles: &[],
    },
];

/// Why a format cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    UnknownFormat(String),
    CannotRead(&'static str),
    CannotWrite(&'static str),
    UnknownProfile {
        format: &'static str,
        profile: String,
    },
}

/// Finds a format that can be read.
pub fn find_reader(name: &str) -> Result<(&'static Format, NewReader), Error> {
    let format = find(name)?;
    let reader = format.reader.ok_or(Error::CannotRead(format.name))?;
    Ok((format, reader))
}

/// Makes a writer, after checking that the format has the profile.
pub fn writer(name: &str, config: &WriterConfig) -> Result<Box<dyn Writer>, Error> {
    let format = find(name)?;
    let writer = format.writer.ok_or(Error::CannotWrite(format.name))?;
    if let Some(profile) = &config.profile
        && !format.profiles.iter().any(|it| it.name == profile)
    {
        return Err(Error::UnknownProfile {
            format: format.name,
            profile: profile.clone(),
        });
    }
    Ok(writer(config))
}

/// A format that is not read.
fn never(_: &str) -> bool {
    false
}

fn find(name: &str) -> Result<&'static Format, Error> {
    FORMATS
        .iter()
        .find(|it| it.name == name)
        .ok_or_else(|| Error::UnknownFormat(name.to_owned()))
}
