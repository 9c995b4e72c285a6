//! The event: an envelope (where and when) and a body (what happened).

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

use crate::ask::{Ask, AskSettled};
use crate::ids::{ItemId, RunId, SessionId};
use crate::item::{Item, Status};
use crate::names::names;
use crate::payload::{Raw, Text};
use crate::run::{RunEnded, RunStarted, Usage};
use crate::time::Timestamp;

/// The version of the canonical JSON; a reader refuses lines of a later one.
pub const VERSION: u32 = 1;

/// Fields of a frame that no rule reads, preserved so that nothing is lost.
pub type Extra<'a> = Cow<'a, [(Cow<'a, str>, Raw<'a>)]>;

/// One fact about a session.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(transform = crate::schema_tests::add_version))]
pub struct Event<'a> {
    /// The only cursor: contiguous per session, from 1.
    pub seq: u64,
    /// The time, if the agent or a live clock reported it.
    #[cfg_attr(test, schemars(skip_serializing_if = "Option::is_none"))]
    pub at: Option<Timestamp>,
    pub session: SessionId<'a>,
    /// The run this belongs to; absent between runs.
    #[cfg_attr(test, schemars(skip_serializing_if = "Option::is_none"))]
    pub run: Option<RunId<'a>>,
    pub engine: Cow<'a, str>,
    /// The sub-agents this happened inside, outermost first, by the id of the call that started each.
    #[cfg_attr(test, schemars(skip_serializing_if = "<[_]>::is_empty"))]
    pub path: Cow<'a, [ItemId<'static>]>,
    pub origin: Origin,
    /// The number of the input frame, from 1; absent when the event came from no frame.
    #[cfg_attr(test, schemars(skip_serializing_if = "Option::is_none"))]
    pub frame: Option<u64>,
    /// The agent's own id of that frame.
    #[cfg_attr(test, schemars(skip_serializing_if = "Option::is_none"))]
    pub native: Option<Cow<'a, str>>,
    /// Why linkspan made this event up.
    #[cfg_attr(test, schemars(skip_serializing_if = "Option::is_none"))]
    pub why: Option<Why>,
    /// The frame's other fields, on the first event that came from it.
    #[cfg_attr(
        test,
        schemars(
            skip_serializing_if = "<[_]>::is_empty",
            with = "crate::schema_tests::ExtraFields"
        )
    )]
    pub extra: Extra<'a>,
    #[cfg_attr(test, schemars(flatten))]
    pub body: Body<'a>,
}

/// What happened. Writers match every variant by name.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(tag = "type", content = "data")
)]
pub enum Body<'a> {
    #[cfg_attr(test, schemars(rename = "session.bound"))]
    SessionBound(SessionBound<'a>),
    #[cfg_attr(test, schemars(rename = "run.started"))]
    RunStarted(RunStarted),
    #[cfg_attr(test, schemars(rename = "run.ended"))]
    RunEnded(RunEnded<'a>),
    #[cfg_attr(test, schemars(rename = "item.opened"))]
    ItemOpened(Item<'a>),
    /// More is known of an open item: a tool's whole input, a plan's new entries.
    #[cfg_attr(test, schemars(rename = "item.updated"))]
    ItemUpdated(Item<'a>),
    #[cfg_attr(test, schemars(rename = "item.delta"))]
    ItemDelta(Delta<'a>),
    #[cfg_attr(test, schemars(rename = "item.closed"))]
    ItemClosed(ItemClosed<'a>),
    #[cfg_attr(test, schemars(rename = "ask.opened"))]
    AskOpened(Ask<'a>),
    #[cfg_attr(test, schemars(rename = "ask.settled"))]
    AskSettled(AskSettled<'a>),
    #[cfg_attr(test, schemars(rename = "usage.reported"))]
    UsageReported(Usage<'a>),
    #[cfg_attr(test, schemars(rename = "notice.raised"))]
    NoticeRaised(Notice<'a>),
    #[cfg_attr(test, schemars(rename = "frame.unmapped"))]
    FrameUnmapped(Unmapped<'a>),
}

impl Body<'_> {
    /// The name in the canonical JSON.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    pub fn kind(&self) -> BodyKind {
        match self {
            Self::SessionBound(_) => BodyKind::SessionBound,
            Self::RunStarted(_) => BodyKind::RunStarted,
            Self::RunEnded(_) => BodyKind::RunEnded,
            Self::ItemOpened(_) => BodyKind::ItemOpened,
            Self::ItemUpdated(_) => BodyKind::ItemUpdated,
            Self::ItemDelta(_) => BodyKind::ItemDelta,
            Self::ItemClosed(_) => BodyKind::ItemClosed,
            Self::AskOpened(_) => BodyKind::AskOpened,
            Self::AskSettled(_) => BodyKind::AskSettled,
            Self::UsageReported(_) => BodyKind::UsageReported,
            Self::NoticeRaised(_) => BodyKind::NoticeRaised,
            Self::FrameUnmapped(_) => BodyKind::FrameUnmapped,
        }
    }
}

/// Which fact an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    SessionBound,
    RunStarted,
    RunEnded,
    ItemOpened,
    ItemUpdated,
    ItemDelta,
    ItemClosed,
    AskOpened,
    AskSettled,
    UsageReported,
    NoticeRaised,
    FrameUnmapped,
}

names!(BodyKind {
    SessionBound = "session.bound",
    RunStarted = "run.started",
    RunEnded = "run.ended",
    ItemOpened = "item.opened",
    ItemUpdated = "item.updated",
    ItemDelta = "item.delta",
    ItemClosed = "item.closed",
    AskOpened = "ask.opened",
    AskSettled = "ask.settled",
    UsageReported = "usage.reported",
    NoticeRaised = "notice.raised",
    FrameUnmapped = "frame.unmapped",
});

/// Who caused an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    Agent,
    Linkspan,
    Client,
}

/// Why linkspan made an event up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The agent's process had exited.
    ProcessExit,
    /// The stream ended before the agent reported the outcome.
    MissingEnd,
    /// The run was aborted on request.
    Abort,
    /// The run ended while this was still open.
    LeftOpen,
    /// The stream used something it never introduced.
    NeverOpened,
    /// The agent resumed another session than the requested one.
    WrongSession,
    /// The stored event was damaged and is not shown.
    Damaged,
    /// The deadline of an ask passed.
    Deadline,
}

/// The agent's own session is known, or reported more about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SessionBound<'a> {
    #[serde(borrow)]
    pub native: SessionId<'a>,
    pub how: Binding,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<McpServer<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Cow<'a, str>>,
}

impl<'a> SessionBound<'a> {
    /// A session of which nothing more is known.
    pub fn new(native: SessionId<'a>, how: Binding) -> Self {
        Self {
            native,
            how,
            model: None,
            cwd: None,
            permission_mode: None,
            version: None,
            tools: Vec::new(),
            mcp_servers: Vec::new(),
            commands: Vec::new(),
        }
    }
}

/// How a native session came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Binding {
    /// The first report of a new session.
    Init,
    /// The requested session.
    Resume,
    Fork,
    /// The same session introduced itself again.
    Repeat,
    /// Another session than the one expected: the run fails.
    Mismatch,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct McpServer<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Cow<'a, str>>,
}

/// A piece of an open item; the pieces of a channel add up to the content of `item.closed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Delta<'a> {
    #[serde(borrow)]
    pub item: ItemId<'a>,
    pub channel: Channel,
    #[serde(borrow)]
    pub text: Text<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// The text of a message or of reasoning.
    Text,
    /// A tool's input, as fragments of JSON text.
    Input,
    /// A tool's output so far.
    Output,
}

/// The whole item at the end of its life.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ItemClosed<'a> {
    pub status: Status,
    #[serde(borrow)]
    pub item: Item<'a>,
}

/// Something worth showing that is no item: a bad line, a retry, a rate limit, a hook, a status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Notice<'a> {
    pub level: Level,
    /// A stable code for programs, such as `bad_line` or `api_retry`.
    #[serde(borrow)]
    pub code: Cow<'a, str>,
    #[serde(borrow)]
    pub text: Text<'a>,
    /// The item it speaks of.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId<'a>>,
    /// The agent's own message, verbatim.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Raw<'a>>,
}

impl<'a> Notice<'a> {
    /// A notice about no item, without the agent's own message.
    pub fn new(level: Level, code: impl Into<Cow<'a, str>>, text: Text<'a>) -> Self {
        Self {
            level,
            code: code.into(),
            text,
            item: None,
            detail: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Debug,
    Info,
    Warning,
    Error,
}

/// A frame or block that no rule knows; its bytes are preserved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unmapped<'a> {
    /// What was unknown, such as ``type `foo` ``.
    #[serde(borrow)]
    pub what: Cow<'a, str>,
    #[serde(borrow)]
    pub raw: Raw<'a>,
}

impl Serialize for Event<'_> {
    // By hand: a line begins with the version, which is no field of an event.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("v", &VERSION)?;
        map.serialize_entry("seq", &self.seq)?;
        if let Some(at) = &self.at {
            map.serialize_entry("at", at)?;
        }
        map.serialize_entry("session", &self.session)?;
        if let Some(run) = &self.run {
            map.serialize_entry("run", run)?;
        }
        map.serialize_entry("engine", &self.engine)?;
        if !self.path.is_empty() {
            map.serialize_entry("path", &self.path)?;
        }
        map.serialize_entry("origin", &self.origin)?;
        if let Some(frame) = &self.frame {
            map.serialize_entry("frame", frame)?;
        }
        if let Some(native) = &self.native {
            map.serialize_entry("native", native)?;
        }
        if let Some(why) = &self.why {
            map.serialize_entry("why", why)?;
        }
        if !self.extra.is_empty() {
            map.serialize_entry("extra", &Entries(&self.extra))?;
        }
        map.serialize_entry("type", self.body.name())?;
        match &self.body {
            Body::SessionBound(it) => map.serialize_entry("data", it)?,
            Body::RunStarted(it) => map.serialize_entry("data", it)?,
            Body::RunEnded(it) => map.serialize_entry("data", it)?,
            Body::ItemOpened(it) | Body::ItemUpdated(it) => map.serialize_entry("data", it)?,
            Body::ItemDelta(it) => map.serialize_entry("data", it)?,
            Body::ItemClosed(it) => map.serialize_entry("data", it)?,
            Body::AskOpened(it) => map.serialize_entry("data", it)?,
            Body::AskSettled(it) => map.serialize_entry("data", it)?,
            Body::UsageReported(it) => map.serialize_entry("data", it)?,
            Body::NoticeRaised(it) => map.serialize_entry("data", it)?,
            Body::FrameUnmapped(it) => map.serialize_entry("data", it)?,
        }
        map.end()
    }
}

/// Extra fields as one JSON object, in the order they came.
struct Entries<'a>(&'a [(Cow<'a, str>, Raw<'a>)]);

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    v: u32,
    seq: u64,
    at: Option<Timestamp>,
    #[serde(borrow)]
    session: SessionId<'a>,
    #[serde(borrow)]
    run: Option<RunId<'a>>,
    #[serde(borrow)]
    engine: Cow<'a, str>,
    #[serde(default)]
    path: Vec<String>,
    origin: Origin,
    frame: Option<u64>,
    #[serde(borrow)]
    native: Option<Cow<'a, str>>,
    why: Option<Why>,
    #[serde(borrow, default)]
    extra: Fields<'a>,
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    data: &'a RawValue,
}

#[derive(Default)]
struct Fields<'a>(Vec<(Cow<'a, str>, Raw<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                // A list and not a map: it keeps the order, and keys that are repeated.
                while let Some(entry) = map.next_entry::<String, Raw<'de>>()? {
                    fields.push((Cow::Owned(entry.0), entry.1));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

impl<'a> Event<'a> {
    /// Reads one canonical line.
    pub fn from_json(line: &'a str) -> Result<Self, serde_json::Error> {
        let line: Line<'a> = serde_json::from_str(line)?;
        // A later version may have changed the meaning of a field: guessing would be worse than failing.
        if line.v > VERSION {
            return Err(de::Error::custom(format!(
                "version {} is newer than this program's {VERSION}",
                line.v
            )));
        }
        Ok(Self {
            seq: line.seq,
            at: line.at,
            session: line.session,
            run: line.run,
            engine: line.engine,
            path: line.path.into_iter().map(ItemId::new).collect(),
            origin: line.origin,
            frame: line.frame,
            native: line.native,
            why: line.why,
            extra: Cow::Owned(line.extra.0),
            body: body(&line.r#type, line.data.get())?,
        })
    }
}

fn body<'a>(name: &str, data: &'a str) -> Result<Body<'a>, serde_json::Error> {
    // Read in a second pass: a derived tagged enum would buffer the data, and `Raw` does not survive that.
    let Some(kind) = BodyKind::find(name) else {
        return Err(de::Error::custom(format!("no event is called `{name}`")));
    };
    Ok(match kind {
        BodyKind::SessionBound => Body::SessionBound(serde_json::from_str(data)?),
        BodyKind::RunStarted => Body::RunStarted(serde_json::from_str(data)?),
        BodyKind::RunEnded => Body::RunEnded(serde_json::from_str(data)?),
        BodyKind::ItemOpened => Body::ItemOpened(serde_json::from_str(data)?),
        BodyKind::ItemUpdated => Body::ItemUpdated(serde_json::from_str(data)?),
        BodyKind::ItemDelta => Body::ItemDelta(serde_json::from_str(data)?),
        BodyKind::ItemClosed => Body::ItemClosed(serde_json::from_str(data)?),
        BodyKind::AskOpened => Body::AskOpened(serde_json::from_str(data)?),
        BodyKind::AskSettled => Body::AskSettled(serde_json::from_str(data)?),
        BodyKind::UsageReported => Body::UsageReported(serde_json::from_str(data)?),
        BodyKind::NoticeRaised => Body::NoticeRaised(serde_json::from_str(data)?),
        BodyKind::FrameUnmapped => Body::FrameUnmapped(serde_json::from_str(data)?),
    })
}
