//! The arguments of a call: JSON inside a JSON string, as two families of protocols send them.

use model::{Raw, Text};
use serde::de::IgnoredAny;

/// The value the text spells; what is no JSON is a string, and nothing at all is no argument.
pub(crate) fn arguments(text: &Text<'_>) -> Raw<'static> {
    let text = text.to_str();
    let text = text.trim();
    if text.is_empty() {
        Raw::parse("{}".to_owned())
    } else if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        Raw::parse(text.to_owned())
    } else {
        Raw::of(&text)
    }
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
        ] {
            assert_eq!(arguments(&Text::new(text)).get(), value);
        }
    }
}
