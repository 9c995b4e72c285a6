//! The one table of formats: what can be read, what can be written, and in which shapes.

use std::fmt;

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
    pub writer: Option<WriterInfo>,
    /// The shapes a writer offers besides its default.
    pub profiles: &'static [ProfileInfo],
}

/// How a format is written.
#[derive(Debug)]
pub struct WriterInfo {
    pub new: NewWriter,
    pub stream_kind: StreamKind,
    /// Long outputs and files are links where it is served, and its frames have room for the cursor.
    pub has_links: bool,
}

#[derive(Debug)]
pub struct ProfileInfo {
    pub name: &'static str,
    pub summary: &'static str,
}

/// The format of the journal: its lines are stored as they are.
pub const CANONICAL: &str = "linkspan";
/// The format for people at a terminal.
pub const TRANSCRIPT: &str = "text";

/// How the bytes of a written format travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// One JSON object per line.
    Lines,
    /// Server-sent events.
    Events,
    /// A transcript of this media type, which has a meaning only as a whole.
    Document(&'static str),
}

impl StreamKind {
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Lines => "application/x-ndjson",
            Self::Events => "text/event-stream",
            Self::Document(media_type) => media_type,
        }
    }

    /// What stands behind each frame.
    pub fn frame_end(self) -> &'static [u8] {
        match self {
            Self::Lines | Self::Document(_) => b"\n",
            Self::Events => b"\n\n",
        }
    }

    /// The frames in what one event has become.
    pub fn frames(self, bytes: &[u8]) -> Vec<&[u8]> {
        let lines = bytes.split(|it| *it == b'\n');
        match self {
            Self::Lines => lines.filter(|it| !it.is_empty()).collect(),
            // Writers put every event on one `data` line, so the blank lines and names around it
            // can go.
            Self::Events => lines.filter_map(|it| it.strip_prefix(b"data: ")).collect(),
            Self::Document(_) => vec![bytes],
        }
    }

    /// Whether each frame has a meaning of its own, so that it can be followed live.
    pub fn is_live(self) -> bool {
        match self {
            Self::Lines | Self::Events => true,
            Self::Document(_) => false,
        }
    }
}

/// What a row means that leaves columns out.
const FORMAT: Format = Format {
    name: "",
    summary: "",
    framing: Framing::Lines,
    reader: None,
    // A format that is only written claims no frame.
    recognises: |_| false,
    writer: None,
    profiles: &[],
};

const fn profile(name: &'static str, summary: &'static str) -> ProfileInfo {
    ProfileInfo { name, summary }
}

const fn written(new: NewWriter, stream_kind: StreamKind) -> Option<WriterInfo> {
    Some(WriterInfo {
        new,
        stream_kind,
        has_links: false,
    })
}

/// Every format, in the order they are listed for people.
pub const FORMATS: &[Format] = &[
    Format {
        name: "claude",
        summary: "Claude Code stream-json",
        reader: Some(readers::machine::<readers::claude::Claude>),
        recognises: readers::claude::recognises,
        writer: written(
            |config| Box::new(writers::claude::Claude::new(config)),
            StreamKind::Lines,
        ),
        profiles: &[profile(
            "partial",
            "with stream_event lines, as --include-partial-messages",
        )],
        ..FORMAT
    },
    Format {
        name: "codex",
        summary: "Codex ThreadEvents, and the app server's messages",
        reader: Some(readers::machine::<readers::codex::Codex>),
        recognises: readers::codex::recognises,
        ..FORMAT
    },
    Format {
        name: "opencode",
        summary: "OpenCode run JSON lines, or server events",
        framing: Framing::Either,
        reader: Some(readers::machine::<readers::opencode::OpenCode>),
        recognises: readers::opencode::recognises,
        ..FORMAT
    },
    Format {
        name: "gemini",
        summary: "Gemini CLI stream-json",
        reader: Some(readers::machine::<readers::gemini::Gemini>),
        recognises: readers::gemini::recognises,
        ..FORMAT
    },
    Format {
        name: "openresponses",
        summary: "Open Responses events, SSE or JSON lines",
        framing: Framing::Either,
        reader: Some(readers::machine::<readers::openresponses::OpenResponses>),
        recognises: readers::openresponses::recognises,
        ..FORMAT
    },
    Format {
        name: "takopi",
        summary: "Takopi events, JSON lines",
        writer: written(
            |config| Box::new(writers::takopi::Takopi::new(config)),
            StreamKind::Lines,
        ),
        profiles: &[
            profile("upstream", "the field names and habits of takopi 0.22.3"),
            profile("debug", "more notes: tools, servers, plans, unknown frames"),
        ],
        ..FORMAT
    },
    Format {
        name: "thread",
        summary: "Codex ThreadEvents, JSON lines",
        writer: Some(WriterInfo {
            new: |config| Box::new(writers::thread::Thread::new(config)),
            stream_kind: StreamKind::Lines,
            has_links: true,
        }),
        profiles: &[
            profile("seed", "every tool call is a command named by its tool"),
            profile("full", "no output is cut"),
        ],
        ..FORMAT
    },
    Format {
        name: "openhands",
        summary: "OpenHands events, JSON lines",
        reader: Some(readers::machine::<readers::openhands::OpenHands>),
        recognises: readers::openhands::recognises,
        writer: written(
            |config| Box::new(writers::openhands::OpenHands::new(config)),
            StreamKind::Lines,
        ),
        profiles: &[
            profile(
                "external",
                "tools as ExternalToolAction and ExternalToolObservation",
            ),
            profile(
                "native",
                "tools as the actions of openhands-tools, where there is one",
            ),
            profile("acp", "tools as ACP cards, and a closing FinishAction"),
            profile("message", "one message per turn"),
        ],
        ..FORMAT
    },
    Format {
        name: "acp",
        summary: "Agent Client Protocol v1, JSON-RPC lines",
        reader: Some(readers::machine::<readers::acp::Acp>),
        recognises: readers::acp::recognises,
        writer: written(
            |config| Box::new(writers::acp::Acp::new(config)),
            StreamKind::Lines,
        ),
        profiles: &[profile(
            "seed",
            "as the OpenHands CLI: reasoning as message, calls pending",
        )],
        ..FORMAT
    },
    Format {
        name: "ag-ui",
        summary: "AG-UI 1.0, server-sent events",
        framing: Framing::Either,
        reader: Some(readers::machine::<readers::ag_ui::AgUi>),
        recognises: readers::ag_ui::recognises,
        writer: written(
            |config| Box::new(writers::ag_ui::AgUi::new(config)),
            StreamKind::Events,
        ),
        profiles: &[profile(
            "thinking",
            "for clients before 0.0.45: THINKING_* events, no sub-agents",
        )],
    },
    Format {
        name: CANONICAL,
        summary: "canonical events, JSON lines",
        reader: Some(|config| Box::new(readers::linkspan::Linkspan::new(config))),
        recognises: readers::linkspan::recognises,
        writer: written(
            |_| Box::<writers::linkspan::Linkspan>::default(),
            StreamKind::Lines,
        ),
        ..FORMAT
    },
    Format {
        name: TRANSCRIPT,
        summary: "a transcript for the terminal",
        writer: written(
            |config| Box::new(writers::text::TextTranscript::new(config)),
            StreamKind::Document("text/plain; charset=utf-8"),
        ),
        ..FORMAT
    },
    Format {
        name: "markdown",
        summary: "a transcript as Markdown",
        writer: written(
            |_| Box::new(PageTranscript::page(writers::markdown::Markdown)),
            StreamKind::Document("text/markdown; charset=utf-8"),
        ),
        ..FORMAT
    },
    Format {
        name: "html",
        summary: "a transcript as one web page",
        writer: written(
            |_| Box::new(PageTranscript::page(writers::html::Html)),
            StreamKind::Document("text/html; charset=utf-8"),
        ),
        ..FORMAT
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFormat(name) => write!(f, "there is no format `{name}`"),
            Self::CannotRead(name) => write!(f, "`{name}` can be written, but not read"),
            Self::CannotWrite(name) => write!(f, "`{name}` can be read, but not written"),
            Self::UnknownProfile { format, profile } => {
                write!(f, "`{format}` has no profile `{profile}`")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Finds a format that can be read.
pub fn find_reader(name: &str) -> Result<(&'static Format, NewReader), Error> {
    let format = find(name)?;
    let reader = format.reader.ok_or(Error::CannotRead(format.name))?;
    Ok((format, reader))
}

/// Finds a format that can be written.
pub fn find_writer(name: &str) -> Result<(&'static Format, &'static WriterInfo), Error> {
    let format = find(name)?;
    let writer = format.writer.as_ref();
    Ok((format, writer.ok_or(Error::CannotWrite(format.name))?))
}

/// Makes a writer, after checking that the format has the profile.
pub fn writer(name: &str, config: &WriterConfig) -> Result<Box<dyn Writer>, Error> {
    let (format, writer) = find_writer(name)?;
    if let Some(profile) = &config.profile
        && !format.profiles.iter().any(|it| it.name == profile)
    {
        return Err(Error::UnknownProfile {
            format: format.name,
            profile: profile.clone(),
        });
    }
    Ok((writer.new)(config))
}

/// The formats that can be followed live.
pub fn live_formats() -> impl Iterator<Item = &'static Format> + Clone {
    FORMATS
        .iter()
        .filter(|it| (it.writer.as_ref()).is_some_and(|it| it.stream_kind.is_live()))
}

fn find(name: &str) -> Result<&'static Format, Error> {
    FORMATS
        .iter()
        .find(|it| it.name == name)
        .ok_or_else(|| Error::UnknownFormat(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bridge_speaks_every_format_that_has_frames() {
        let live: Vec<&str> = live_formats().map(|it| it.name).collect();
        let expected = [
            "claude",
            "takopi",
            "thread",
            "openhands",
            "acp",
            "ag-ui",
            CANONICAL,
        ];
        assert_eq!(live, expected);
    }
}
