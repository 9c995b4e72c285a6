//! Tool calls: the agent's name and input, and their classification.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ids::ItemId;
use crate::item::own;
use crate::payload::{Raw, Text};

/// One call of a tool. The agent's own name and input stay beside the classification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tool<'a> {
    #[serde(borrow)]
    pub id: ItemId<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The whole input; absent while it is still streaming.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Raw<'a>>,
    #[serde(borrow)]
    pub class: Class<'a>,
    /// The provider runs it, not the agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub server_side: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult<'a>>,
}

/// A tool's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolResult<'a> {
    /// A JSON string, or an array of content blocks.
    #[serde(borrow)]
    pub content: Raw<'a>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The structured form some agents send along.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Raw<'a>>,
    /// The agent's report of how it was allowed or denied.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw<'a>>,
}

/// The classification of a tool call, shared by all writers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Class<'a> {
    pub kind: ToolKind,
    /// One line for people; never empty. Paths in it are relative to the working directory.
    #[serde(borrow)]
    pub title: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Location<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<Diff<'a>>,
    /// Search terms, a pattern or a URL.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub query: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<Mcp<'a>>,
    /// What happened to the file, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    Shell,
    Read,
    Edit,
    Write,
    Delete,
    Move,
    Search,
    Fetch,
    WebSearch,
    Mcp,
    Task,
    Todo,
    Ask,
    Think,
    /// Changes the agent's permissions, such as leaving plan mode.
    Mode,
    Other,
}

impl ToolKind {
    /// The name in the canonical JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Search => "search",
            Self::Fetch => "fetch",
            Self::WebSearch => "web_search",
            Self::Mcp => "mcp",
            Self::Task => "task",
            Self::Todo => "todo",
            Self::Ask => "ask",
            Self::Think => "think",
            Self::Mode => "mode",
            Self::Other => "other",
        }
    }
}

/// A place in a file; lines count from 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Location<'a> {
    #[serde(borrow)]
    pub path: Text<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// A replacement in a file; no old text means the whole file is new.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Diff<'a> {
    #[serde(borrow)]
    pub path: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Text<'a>>,
    #[serde(borrow)]
    pub new: Text<'a>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Mcp<'a> {
    #[serde(borrow)]
    pub server: Cow<'a, str>,
    #[serde(borrow)]
    pub tool: Cow<'a, str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Add,
    Update,
    Delete,
}

impl Tool<'_> {
    pub fn into_owned(self) -> Tool<'static> {
        Tool {
            id: self.id.into_owned(),
            group: self.group.map(own),
            name: own(self.name),
            input: self.input.map(Raw::into_owned),
            class: self.class.into_owned(),
            server_side: self.server_side,
            result: self.result.map(ToolResult::into_owned),
        }
    }
}

impl ToolResult<'_> {
    fn into_owned(self) -> ToolResult<'static> {
        ToolResult {
            content: self.content.into_owned(),
            is_error: self.is_error,
            structured: self.structured.map(Raw::into_owned),
            meta: self.meta.map(Raw::into_owned),
        }
    }
}

impl<'a> Class<'a> {
    /// A class with only a kind and a title.
    pub fn plain(kind: ToolKind, title: Text<'a>) -> Self {
        Self {
            kind,
            title,
            command: None,
            paths: Vec::new(),
            diffs: Vec::new(),
            query: None,
            mcp: None,
            change: None,
            exit_code: None,
        }
    }

    pub fn into_owned(self) -> Class<'static> {
        Class {
            kind: self.kind,
            title: self.title.into_owned(),
            command: self.command.map(Text::into_owned),
            paths: self.paths.into_iter().map(Location::into_owned).collect(),
            diffs: self.diffs.into_iter().map(Diff::into_owned).collect(),
            query: self.query.map(Text::into_owned),
            mcp: self.mcp.map(Mcp::into_owned),
            change: self.change,
            exit_code: self.exit_code,
        }
    }
}

impl Location<'_> {
    fn into_owned(self) -> Location<'static> {
        Location {
            path: self.path.into_owned(),
            line: self.line,
        }
    }
}

impl Diff<'_> {
    fn into_owned(self) -> Diff<'static> {
        Diff {
            path: self.path.into_owned(),
            old: self.old.map(Text::into_owned),
            new: self.new.into_owned(),
        }
    }
}

impl Mcp<'_> {
    fn into_owned(self) -> Mcp<'static> {
        Mcp {
            server: own(self.server),
            tool: own(self.tool),
        }
    }
}
