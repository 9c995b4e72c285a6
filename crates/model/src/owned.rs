//! Copies that outlive the frame they were read from.

use std::borrow::Cow;

use crate::ask::{Ask, AskKind, Deadline};
use crate::ids::{AskId, ItemId, RunId, SessionId};
use crate::item::{
    Compaction, Item, Message, Other, Part, Plan, PlanEntry, PlanStatus, Reasoning, Role, Subagent,
};
use crate::payload::{Raw, Text};
use crate::run::Denial;
use crate::tool::{Change, Class, Diff, Location, Mcp, Tool, ToolKind, ToolResult};

/// How the field of a struct becomes its own.
trait Own {
    type Static;

    fn own(self) -> Self::Static;
}

impl Own for Cow<'_, str> {
    type Static = Cow<'static, str>;

    fn own(self) -> Self::Static {
        Cow::Owned(self.into_owned())
    }
}

impl<T: Own> Own for Option<T> {
    type Static = Option<T::Static>;

    fn own(self) -> Self::Static {
        self.map(T::own)
    }
}

impl<T: Own> Own for Vec<T> {
    type Static = Vec<T::Static>;

    fn own(self) -> Self::Static {
        self.into_iter().map(T::own).collect()
    }
}

macro_rules! borrow_nothing {
    ($($name:ty)+) => {$(
        impl Own for $name {
            type Static = Self;

            fn own(self) -> Self {
                self
            }
        }
    )+};
}

borrow_nothing! { bool i32 u64 AskKind Change Deadline PlanStatus Role ToolKind }

macro_rules! have_into_owned {
    ($($name:ident)+) => {$(
        impl Own for $name<'_> {
            type Static = $name<'static>;

            fn own(self) -> Self::Static {
                self.into_owned()
            }
        }
    )+};
}

have_into_owned! { AskId ItemId RunId SessionId Raw Text Part }

/// A struct by its fields; one that is left out does not compile.
macro_rules! into_owned {
    ($($name:ident { $($field:ident),+ })+) => {$(
        impl $name<'_> {
            /// A copy that may outlive the frame it was read from.
            pub fn into_owned(self) -> $name<'static> {
                $name { $($field: self.$field.own()),+ }
            }
        }

        have_into_owned! { $name }
    )+};
}

into_owned! {
    Ask { id, kind, item, tool, title, description, input, suggestions, deadline }
    Class { kind, title, command, paths, diffs, query, mcp, change, exit_code }
    Compaction { id, trigger, summary, tokens_before, tokens_after, detail }
    Denial { tool, item, input }
    Diff { path, old, new }
    Location { path, line }
    Mcp { server, tool }
    Message { id, role, group, text, parts }
    Other { id, name, text, data }
    Plan { id, entries }
    PlanEntry { key, text, status, doing }
    Reasoning { id, group, text, signature, encrypted }
    Subagent { id, call, name, description, prompt, background, report, detail }
    Tool { id, group, name, input, class, server_side, result }
    ToolResult { content, is_error, structured, meta }
}

impl Item<'_> {
    pub fn into_owned(self) -> Item<'static> {
        match self {
            Self::Message(it) => Item::Message(it.own()),
            Self::Reasoning(it) => Item::Reasoning(it.own()),
            Self::Tool(it) => Item::Tool(Box::new(it.own())),
            Self::Plan(it) => Item::Plan(it.own()),
            Self::Subagent(it) => Item::Subagent(it.own()),
            Self::Compaction(it) => Item::Compaction(it.own()),
            Self::Other(it) => Item::Other(it.own()),
        }
    }
}

impl Part<'_> {
    pub fn into_owned(self) -> Part<'static> {
        match self {
            Self::Image { media_type, data } => Part::Image {
                media_type: media_type.own(),
                data: data.own(),
            },
            Self::ImageUrl { url } => Part::ImageUrl { url: url.own() },
            Self::Other(raw) => Part::Other(raw.own()),
        }
    }
}
