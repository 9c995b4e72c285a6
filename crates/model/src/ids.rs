//! Ids are opaque strings that cannot be swapped for one another.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

// One macro, so that all ids have the same methods and none converts into another.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name<'a>(#[serde(borrow)] pub Cow<'a, str>);

        impl<'a> $name<'a> {
            pub fn new(id: impl Into<Cow<'a, str>>) -> Self {
                Self(id.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The same id, borrowing from this one.
            pub fn by_ref(&self) -> $name<'_> {
                $name(Cow::Borrowed(&self.0))
            }

            pub fn into_owned(self) -> $name<'static> {
                $name(Cow::Owned(self.0.into_owned()))
            }
        }

        impl fmt::Display for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A session: linkspan's own in an envelope, the agent's in `session.bound`.
    SessionId
);
id!(
    /// One prompt cycle of a session.
    RunId
);
id!(
    /// Something with a life inside a session; a tool call's id is the agent's own call id.
    ItemId
);
id!(
    /// An open question of the agent.
    AskId
);
