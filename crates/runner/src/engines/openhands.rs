//! OpenHands: a conversation of its SDK, held by a small Python program that comes with linkspan.
//!
//! The program (`openhands/shim.py`) takes lines of its own on stdin and prints the SDK's events. One
//! prompt is the same as many: its lines are written, and stdin is closed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::invocation::allowed;
use super::{AgentRules, EngineConfig, Error, Invocation, arguments};
use crate::request::{Image, Interaction, McpVia, Mode, Prompt, Request, Resume, Stdin};

/// What `listed` allows when neither the caller nor the config has a list; looking is never asked.
pub(crate) const ALLOWED_TOOLS: &[&str] = &["terminal", "file_editor"];

pub(super) const SHIM: &str = include_str!("openhands/shim.py");

/// Says which SDK a Python has, without importing it, and without looking into the working directory.
pub(super) const VERSION: &[&str] = &[
    "-c",
    "import sys; sys.path[:] = [it for it in sys.path if it]; \
     from importlib.metadata import version; print(version('openhands-sdk'))",
];

/// A line for the shim.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ShimLine<'a> {
    /// The first one.
    Open {
        #[serde(flatten)]
        opening: ShimOpen<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        effort: Option<&'a str>,
        /// By name, as the SDK's own config has them.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        mcp_servers: BTreeMap<&'a str, ShimServer<'a>>,
        permissions: ToolRules,
    },
    Prompt {
        text: &'a str,
        /// As `data:` addresses.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<String>,
    },
    /// The answer to the question whether a call may run.
    Answer {
        call: &'a str,
        allow: bool,
        /// The same tool is not asked about again.
        #[serde(skip_serializing_if = "is_false")]
        always: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    },
    Interrupt,
    Model {
        model: &'a str,
    },
    Permissions {
        permissions: ToolRules,
    },
}

/// What a conversation begins with.
#[derive(Debug, Serialize)]
pub(crate) struct ShimOpen<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fork: Option<&'a str>,
    #[serde(skip_serializing_if = "is_false")]
    latest: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "transport", rename_all = "snake_case")]
pub(crate) enum ShimServer<'a> {
    Stdio {
        command: &'a str,
        args: &'a [String],
        env: BTreeMap<&'a str, &'a str>,
    },
    Http {
        url: &'a str,
        headers: BTreeMap<&'a str, &'a str>,
    },
    Sse {
        url: &'a str,
        headers: BTreeMap<&'a str, &'a str>,
    },
}

impl<'a> From<&'a McpVia> for ShimServer<'a> {
    fn from(via: &'a McpVia) -> Self {
        fn map(pairs: &[(String, String)]) -> BTreeMap<&str, &str> {
            let pairs = pairs.iter();
            pairs.map(|(name, value)| (&**name, &**value)).collect()
        }
        match via {
            McpVia::Stdio { command, args, env } => Self::Stdio {
                command,
                args,
                env: map(env),
            },
            McpVia::Http { url, headers } => Self::Http {
                url,
                headers: map(headers),
            },
            McpVia::Sse { url, headers } => Self::Sse {
                url,
                headers: map(headers),
            },
        }
    }
}

/// What calls may run.
#[derive(Debug, Serialize)]
pub(crate) struct ToolRules {
    /// All but those that are denied.
    everything: bool,
    /// Changes of files below the working directory.
    edits: bool,
    /// A client can answer; otherwise everything that is not allowed is denied.
    asks: bool,
    allow: Vec<String>,
    deny: Vec<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes every field by reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

impl<'a> ShimLine<'a> {
    pub(crate) fn open(config: &'a EngineConfig, request: &'a Request) -> Self {
        let (session, fork) = match &request.resume {
            Resume::Fresh | Resume::Latest => (None, None),
            Resume::Session(id) => (Some(id.as_str()), None),
            Resume::Fork(id) => (None, Some(id.as_str())),
        };
        Self::Open {
            opening: ShimOpen {
                session,
                fork,
                latest: request.resume == Resume::Latest,
            },
            model: request.options.model.as_deref().or(config.model.as_deref()),
            effort: request.options.effort.as_deref(),
            mcp_servers: (request.mcp_servers.iter())
                .map(|it| (&*it.name, (&it.via).into()))
                .collect(),
            permissions: limits(config, request),
        }
    }

    pub(crate) fn prompt(prompt: &'a Prompt) -> Self {
        let data = |it: &Image| format!("data:{};base64,{}", it.media_type, it.data);
        Self::Prompt {
            text: &prompt.text,
            images: prompt.images.iter().map(data).collect(),
        }
    }

    fn text(&self) -> String {
        let line = model::json_string(self);
        line.expect("lines are plain data with string keys") + "\n"
    }
}

pub(crate) fn limits(config: &EngineConfig, request: &Request) -> ToolRules {
    let mode = request.permissions.mode;
    let allow = named(&allowed(config, request, ALLOWED_TOOLS));
    ToolRules {
        everything: mode == Mode::Allow,
        edits: mode == Mode::AcceptEdits,
        asks: request.can_ask(),
        allow,
        deny: named(&request.permissions.deny),
    }
}

/// OpenHands' own names; people may use those of the kinds of tools.
fn named(tools: &[String]) -> Vec<String> {
    let name = |it: &String| match it.as_str() {
        "shell" => "terminal".to_owned(),
        "edit" | "write" => "file_editor".to_owned(),
        _ => it.clone(),
    };
    tools.iter().map(name).collect()
}

pub(super) const RULES: AgentRules = AgentRules::new(invocation, ALLOWED_TOOLS);

fn invocation(config: &EngineConfig, request: &Request) -> Result<Invocation, Error> {
    if let Resume::Session(id) | Resume::Fork(id) = &request.resume
        && !arguments::is_uuid(arguments::id(id)?)
    {
        return Err(arguments::refused(
            "the session id",
            "is no UUID, which OpenHands needs",
            id,
        ));
    }
    if let Some(model) = request.options.model.as_ref().or(config.model.as_ref()) {
        arguments::model(model)?;
    }
    if let Some(effort) = &request.options.effort {
        arguments::flag_value("the effort", effort)?;
    }
    arguments::whole_tools(&allowed(config, request, &[]))?;
    arguments::whole_tools(&request.permissions.deny)?;
    let stdin = match request.talk {
        Interaction::Dialogue => Stdin::Open,
        Interaction::OneShot => {
            let prompt = request.prompt.as_str().into();
            let lines = [ShimLine::open(config, request), ShimLine::prompt(&prompt)];
            Stdin::Text(lines.iter().map(ShimLine::text).collect())
        }
    };
    let mut it = Invocation::new(stdin);
    it.extra(config).args(["-c", SHIM]);
    Ok(it)
}
