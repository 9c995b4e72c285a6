//! Items: the things of a run that open, grow and close.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::ids::ItemId;
use crate::names::names;
use crate::payload::{Raw, Text};
use crate::tool::Tool;

/// A thing with a life inside a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Item<'a> {
    Message(Message<'a>),
    Reasoning(Reasoning<'a>),
    // Boxed: it is far larger than the others, and every item would be as large.
    Tool(Box<Tool<'a>>),
    Plan(Plan<'a>),
    Subagent(Subagent<'a>),
    Compaction(Compaction<'a>),
    Other(Other<'a>),
}

/// How an item's life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Ok,
    Error,
    /// It was not allowed, by a user or by a rule.
    Denied,
    /// It was stopped on purpose.
    Cancelled,
    /// The stream ended before the item's outcome was reported.
    Lost,
}

names!(Status {
    Ok = "ok",
    Error = "error",
    Denied = "denied",
    Cancelled = "cancelled",
    Lost = "lost",
});

/// Text with its images and files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Message<'a> {
    #[serde(borrow)]
    pub id: ItemId<'a>,
    pub role: Role,
    /// The model response this is a part of; items of one response share it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub text: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
    /// The agent program itself, addressing its model: neither the user's text nor the model's.
    Harness,
}

/// A piece of content that is not text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Part<'a> {
    /// Base64 data with its media type.
    Image {
        #[serde(borrow)]
        media_type: Cow<'a, str>,
        #[serde(borrow)]
        data: Text<'a>,
    },
    /// A picture somewhere else.
    ImageUrl {
        #[serde(borrow)]
        url: Text<'a>,
    },
    /// Any other block, as it came.
    Other(#[serde(borrow)] Raw<'a>),
}

/// The model's reasoning before its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reasoning<'a> {
    #[serde(borrow)]
    pub id: ItemId<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub text: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Text<'a>>,
    /// Thinking the provider hides: only its own model can read it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<Text<'a>>,
}

/// A list of things to do; each update carries the whole list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Plan<'a> {
    #[serde(borrow)]
    pub id: ItemId<'a>,
    #[serde(borrow, default)]
    pub entries: Vec<PlanEntry<'a>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanEntry<'a> {
    /// The agent's own id of the entry.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub text: Text<'a>,
    pub status: PlanStatus,
    /// What to show while it is being done, such as "Running the tests".
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<Text<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}

/// An agent that an agent started; what it does carries its call id in the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Subagent<'a> {
    #[serde(borrow)]
    pub id: ItemId<'a>,
    /// The tool call that started it.
    #[serde(borrow)]
    pub call: ItemId<'a>,
    /// What kind of agent it is, such as `general-purpose`.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Text<'a>>,
    /// It runs in the background while its parent continues.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// Its final report.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Raw<'a>>,
}

/// The agent replaced the early part of the conversation by a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Compaction<'a> {
    #[serde(borrow)]
    pub id: ItemId<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_after: Option<u64>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Raw<'a>>,
}

/// An item of a kind the model has no type for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Other<'a> {
    #[serde(borrow)]
    pub id: ItemId<'a>,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Text<'a>>,
    #[serde(borrow)]
    pub data: Raw<'a>,
}

impl<'a> Item<'a> {
    pub fn id(&self) -> &ItemId<'a> {
        match self {
            Self::Message(it) => &it.id,
            Self::Reasoning(it) => &it.id,
            Self::Tool(it) => &it.id,
            Self::Plan(it) => &it.id,
            Self::Subagent(it) => &it.id,
            Self::Compaction(it) => &it.id,
            Self::Other(it) => &it.id,
        }
    }

    pub fn id_mut(&mut self) -> &mut ItemId<'a> {
        match self {
            Self::Message(it) => &mut it.id,
            Self::Reasoning(it) => &mut it.id,
            Self::Tool(it) => &mut it.id,
            Self::Plan(it) => &mut it.id,
            Self::Subagent(it) => &mut it.id,
            Self::Compaction(it) => &mut it.id,
            Self::Other(it) => &mut it.id,
        }
    }

    /// The name of the kind in the canonical JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Message(_) => "message",
            Self::Reasoning(_) => "reasoning",
            Self::Tool(_) => "tool",
            Self::Plan(_) => "plan",
            Self::Subagent(_) => "subagent",
            Self::Compaction(_) => "compaction",
            Self::Other(_) => "other",
        }
    }
}

impl<'a> From<Message<'a>> for Item<'a> {
    fn from(message: Message<'a>) -> Self {
        Self::Message(message)
    }
}

impl<'a> From<Reasoning<'a>> for Item<'a> {
    fn from(reasoning: Reasoning<'a>) -> Self {
        Self::Reasoning(reasoning)
    }
}

impl<'a> From<Tool<'a>> for Item<'a> {
    fn from(tool: Tool<'a>) -> Self {
        Self::Tool(Box::new(tool))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Item<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A derived tagged enum would buffer the object, and raw payloads do not survive that.
        #[derive(Deserialize)]
        struct Kind<'a> {
            #[serde(borrow)]
            kind: Cow<'a, str>,
        }
        fn read<'a>(json: &'a str) -> Result<Item<'a>, serde_json::Error> {
            let Kind { kind } = serde_json::from_str(json)?;
            Ok(match &*kind {
                "message" => Item::Message(serde_json::from_str(json)?),
                "reasoning" => Item::Reasoning(serde_json::from_str(json)?),
                "tool" => Item::Tool(Box::new(serde_json::from_str(json)?)),
                "plan" => Item::Plan(serde_json::from_str(json)?),
                "subagent" => Item::Subagent(serde_json::from_str(json)?),
                "compaction" => Item::Compaction(serde_json::from_str(json)?),
                "other" => Item::Other(serde_json::from_str(json)?),
                kind => {
                    let message = format!("no item is of kind `{kind}`");
                    return Err(serde::de::Error::custom(message));
                }
            })
        }
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        read(raw.get()).map_err(serde::de::Error::custom)
    }
}

impl<'a> Message<'a> {
    /// A message of its own, without pictures or files.
    pub fn new(id: ItemId<'a>, role: Role, text: Text<'a>) -> Self {
        Self {
            id,
            role,
            group: None,
            text,
            parts: Vec::new(),
        }
    }
}

impl<'a> Reasoning<'a> {
    pub fn new(id: ItemId<'a>, text: Text<'a>) -> Self {
        Self {
            id,
            group: None,
            text,
            signature: None,
            encrypted: None,
        }
    }
}

impl<'a> PlanEntry<'a> {
    pub fn new(text: Text<'a>, status: PlanStatus) -> Self {
        Self {
            key: None,
            text,
            status,
            doing: None,
        }
    }
}

impl<'a> Compaction<'a> {
    /// A compaction of which nothing more is known.
    pub fn new(id: ItemId<'a>) -> Self {
        Self {
            id,
            trigger: None,
            summary: None,
            tokens_before: None,
            tokens_after: None,
            detail: None,
        }
    }
}
