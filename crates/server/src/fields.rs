//! Reads the JSON objects that clients send. Unknown fields are refused: a misspelt `permissions`
//! must not result in a run with other permissions.
//!
//! The names are those that serde knows, aliases included, so there is no second list to keep. Query
//! parameters and protocols of others (`RunAgentInput`) do not come through here.

use std::fmt;

use runner::nearest;
use serde::de::value::Error as NotRead;
use serde::de::{DeserializeOwned, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

use crate::error::{ApiError, Result};

/// Characters of an unknown name that are repeated in an error.
const MAX_NAME: usize = 80;

/// What the fields of a JSON object are read into.
pub(crate) trait Fields: Sized {
    /// The names of the fields, with their aliases.
    fn names() -> Vec<&'static str>;
    /// Reads them; fields of other names are left to others.
    fn read(object: Object<'_>) -> Result<Self>;
}

impl<T: DeserializeOwned> Fields for T {
    fn names() -> Vec<&'static str> {
        names_of::<T>().to_vec()
    }

    fn read(object: Object<'_>) -> Result<Self> {
        let read = match object {
            Object::Json(json) => {
                serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(json))
            }
            Object::Map(fields) => serde_path_to_error::deserialize(Value::Object(fields.clone())),
        };
        read.map_err(|err| unreadable(&err))
    }
}

/// An object that is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Object<'a> {
    Json(&'a [u8]),
    Map(&'a Map<String, Value>),
}

/// Reads a body.
pub(crate) fn from_slice<T: Fields>(json: &[u8]) -> Result<T> {
    let bad = |err: serde_json::Error| ApiError::bad(format!("the body cannot be read: {err}"));
    // `deny_unknown_fields` cannot do this: a prompt is read into two structs, and each would
    // refuse the fields of the other.
    let Names(names) = serde_json::from_slice(json).map_err(bad)?;
    check(names.iter().map(String::as_str), &T::names())?;
    T::read(Object::Json(json))
}

/// Reads an object that has the fields of `T` and no others.
pub(crate) fn from_map<T: Fields>(fields: &Map<String, Value>) -> Result<T> {
    check(fields.keys().map(String::as_str), &T::names())?;
    T::read(Object::Map(fields))
}

/// Reads an object that has the fields of `A` and of `B` and no others.
pub(crate) fn both_from_map<A: Fields, B: Fields>(fields: &Map<String, Value>) -> Result<(A, B)> {
    let known = [A::names(), B::names()].concat();
    check(fields.keys().map(String::as_str), &known)?;
    let object = Object::Map(fields);
    Ok((A::read(object)?, B::read(object)?))
}

fn unreadable(err: &serde_path_to_error::Error<serde_json::Error>) -> ApiError {
    let path = err.path().to_string();
    let words = plain(err.inner().to_string());
    ApiError::bad(match &*path {
        // It is about the object itself, such as a field that is missing.
        "." => format!("the fields cannot be read: {words}"),
        field => format!("`{field}` cannot be read: {words}"),
    })
}

/// The words of serde, without the types of this program.
fn plain(words: String) -> String {
    let types = [
        ("expected f64", "expected a number"),
        ("expected u32", "expected a whole number"),
        ("expected u64", "expected a whole number"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected an object"),
    ];
    types.iter().fold(words, |words, (of_rust, plain)| {
        words.replace(of_rust, plain)
    })
}

/// Refuses the first name that is not known.
fn check<'a>(mut names: impl Iterator<Item = &'a str>, known: &[&'static str]) -> Result<()> {
    let Some(unknown) = names.find(|it| !known.contains(it)) else {
        return Ok(());
    };
    let shown: String = unknown.chars().take(MAX_NAME).collect();
    let words = match nearest(&shown, known.iter().copied()) {
        Some(near) => format!("unknown field `{shown}`; did you mean `{near}`?"),
        None => format!("unknown field `{shown}`"),
    };
    let hint = match known.is_empty() {
        true => "no fields are known here".to_owned(),
        false => format!("known here: {}", known.join(", ")),
    };
    Err(ApiError::bad(words).hint(hint))
}

/// The names of the fields of a struct, with their aliases; of anything else none, so that nothing
/// passes unchecked.
fn names_of<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // It gives the names away and then fails.
    T::deserialize(Introspection(&mut names)).err();
    names
}

/// An empty source that records which fields are requested.
struct Introspection<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Introspection<'_> {
    type Error = NotRead;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NotRead> {
        Err(NotRead::custom("there is nothing to read"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NotRead> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The field names of an object, without their values.
struct Names(Vec<String>);

impl<'de> serde::Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NamesVisitor;
        impl<'de> Visitor<'de> for NamesVisitor {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = map.next_entry()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }
        deserializer.deserialize_map(NamesVisitor)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Small {
        permissions: Option<String>,
        #[serde(alias = "workingDir")]
        cwd: Option<String>,
        max_count: Option<u32>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct More {
        decision: Option<String>,
    }

    fn refusal(json: &str) -> (String, Option<String>) {
        let err = from_slice::<Small>(json.as_bytes()).unwrap_err();
        assert_eq!((err.status.as_u16(), err.code), (400, "bad_request"));
        (err.message, err.hint)
    }

    #[test]
    fn an_unknown_field_is_named_with_the_one_that_is_meant() {
        let known = "known here: permissions, cwd, workingDir, maxCount";
        for (field, near) in [
            ("permissionMode", Some("permissions")),
            ("permission", Some("permissions")),
            ("Permissions", Some("permissions")),
            ("working_dir", Some("workingDir")),
            ("max_count", Some("maxCount")),
            ("", None),
            ("zzz", None),
        ] {
            let words = match near {
                Some(near) => format!("unknown field `{field}`; did you mean `{near}`?"),
                None => format!("unknown field `{field}`"),
            };
            let json = json!({ (field): "plan" }).to_string();
            assert_eq!(refusal(&json), (words, Some(known.to_owned())));
        }
        let long = format!("{{\"{}\": 1}}", "ä".repeat(1000));
        assert_eq!(
            refusal(&long).0,
            format!("unknown field `{}`", "ä".repeat(MAX_NAME))
        );
    }

    #[test]
    fn what_is_no_object_or_of_another_type_is_refused_by_its_name() {
        for (json, words) in [
            (
                "[]",
                "the body cannot be read: invalid type: sequence, expected a JSON object at line 1 column 0",
            ),
            (
                r#"{"maxCount": -1}"#,
                "`maxCount` cannot be read: invalid value: integer `-1`, expected a whole number at line 1 column 15",
            ),
            (
                r#"{"cwd": "a", "workingDir": "b"}"#,
                "the fields cannot be read: duplicate field `cwd` at line 1 column 25",
            ),
            (
                "{} {}",
                "the body cannot be read: trailing characters at line 1 column 4",
            ),
        ] {
            assert_eq!(refusal(json), (words.to_owned(), None), "{json}");
        }
    }

    #[test]
    fn fields_of_two_kinds_can_stand_in_one_object() {
        let fields = json!({ "cwd": "/", "decision": "allow" });
        let fields = fields.as_object().unwrap();
        let (small, more) = both_from_map::<Small, More>(fields).unwrap();
        assert_eq!(
            (small.cwd.as_deref(), more.decision.as_deref()),
            (Some("/"), Some("allow"))
        );
        let err = from_map::<More>(fields).unwrap_err();
        assert_eq!(err.message, "unknown field `cwd`");
        assert_eq!(err.hint.as_deref(), Some("known here: decision"));
    }

    #[test]
    fn what_is_no_struct_takes_no_fields() {
        let fields = json!({ "a": 1 });
        let err = from_map::<Map<String, Value>>(fields.as_object().unwrap()).unwrap_err();
        assert_eq!(err.hint.as_deref(), Some("no fields are known here"));
    }
}
