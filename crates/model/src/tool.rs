//! Tool calls: the agent's name and input, and their classification.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ids::ItemId;
use crate::names::names;
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

names!(ToolKind {
    Shell = "shell",
    Read = "read",
    Edit = "edit",
    Write = "write",
    Delete = "delete",
    Move = "move",
    Search = "search",
    Fetch = "fetch",
    WebSearch = "web_search",
    Mcp = "mcp",
    Task = "task",
    Todo = "todo",
    Ask = "ask",
    Think = "think",
    Mode = "mode",
    Other = "other",
});

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

impl<'a> Tool<'a> {
    /// A call whose input and result are not known yet.
    pub fn new(id: ItemId<'a>, name: impl Into<Cow<'a, str>>, class: Class<'a>) -> Self {
        Self {
            id,
            group: None,
            name: name.into(),
            input: None,
            class,
            server_side: false,
            result: None,
        }
    }
}

impl<'a> ToolResult<'a> {
    pub fn new(content: Raw<'a>, is_error: bool) -> Self {
        Self {
            content,
            is_error,
            structured: None,
            meta: None,
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
}
