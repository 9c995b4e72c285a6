//! The names of enum variants, in both directions and from one table.

/// Gives an enum `name` and `find`. Serde has the same names, but hands them out only to a serializer.
macro_rules! names {
    ($enum:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $enum {
            #[cfg(test)]
            pub(crate) const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name in the canonical JSON.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            pub fn find(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

pub(crate) use names;

#[cfg(test)]
mod tests {
    use crate::{BodyKind, Decision, Outcome, Status, ToolKind};

    #[test]
    fn names_are_those_that_serde_writes() {
        macro_rules! check {
            ($($enum:ident)+) => {$(
                for name in $enum::NAMES {
                    let value = $enum::find(name).unwrap();
                    assert_eq!(value.name(), *name);
                    assert_eq!(serde_json::to_string(&value).unwrap(), format!("{name:?}"));
                }
                assert_eq!($enum::find("nothing"), None);
            )+};
        }
        check!(Decision Outcome Status ToolKind);
        // Bodies are written by hand; the schema has their names.
        for name in BodyKind::NAMES {
            assert_eq!(BodyKind::find(name).map(BodyKind::name), Some(*name));
        }
    }
}
