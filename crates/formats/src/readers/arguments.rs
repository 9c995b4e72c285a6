//! The arguments of a call: JSON inside a JSON string, as two families of protocols send them.

use std::borrow::Cow;

use model::{Raw, Text};

/// The value the text spells; what is no JSON is a string, and nothing at all is no argument.
pub(crate) fn arguments(text: &Text<'_>) -> Raw<'static> {
    let json = match text.to_str() {
        Cow::Owned(json) if json.trim().len() == json.len() => json,
        json => json.trim().to_owned(),
    };
    // A call without arguments streams nothing; consumers expect an object there.
    if json.is_empty() {
        return Raw::parse("{}".to_owned());
    }
    // A custom tool takes plain text: it is a string, not an error.
    Raw::read(json).unwrap_or_else(|| Raw::of(&text.to_str().trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_some_value() {
        for (text, value) in [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("", "{}"),
            ("SELECT 1", r#""SELECT 1""#),
            (r#"{"a"#, r#""{\"a""#),
            (" {\n\"a\":1} ", r#"{ "a":1}"#),
            ("{\"a\":\"\n\"}", r#""{\"a\":\"\n\"}""#),
        ] {
            assert_eq!(arguments(&Text::new(text)).get(), value);
        }
    }
}
