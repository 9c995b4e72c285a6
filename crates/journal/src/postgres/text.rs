//! Strings in `text` columns, which cannot hold a NUL.
//!
//! Ids and titles come from agents and people, and may be any string. A NUL is stored as U+FFFF and `0`, and
//! U+FFFF, which is no character, as itself and `1`; all other strings are stored as they are.

use std::borrow::Cow;
use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

const ESCAPE: char = '\u{FFFF}';

/// A string on its way into a `text` column.
#[derive(Clone, Debug)]
pub(super) struct Text<'a>(Cow<'a, str>);

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(encode(text))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(encode(&text).into_owned()))
    }
}

impl ToSql for Text<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        (&*self.0).to_sql(ty, out)
    }

    fn accepts(ty: &Type) -> bool {
        <&str as ToSql>::accepts(ty)
    }

    to_sql_checked!();
}

fn encode(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    // In this order: the second step adds escapes that stand for themselves.
    let escaped = text.replace(ESCAPE, "\u{FFFF}1");
    Cow::Owned(escaped.replace('\0', "\u{FFFF}0"))
}

/// The string that was stored.
pub(super) fn decode(stored: &str) -> String {
    let mut pieces = stored.split(ESCAPE);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.strip_prefix('0') {
            Some(rest) => {
                text.push('\0');
                text.push_str(rest);
            }
            None => {
                text.push(ESCAPE);
                text.push_str(piece.strip_prefix('1').unwrap_or(piece));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_comes_back_and_no_two_are_stored_alike() {
        let texts = [
            "",
            "plain",
            "\0",
            "\u{FFFF}",
            "\u{FFFF}0",
            "\u{FFFF}1",
            "\0\u{FFFF}\0",
            "0\0\u{FFFF}1",
        ];
        let mut stored = texts.map(|it| encode(it).into_owned()).to_vec();
        assert_eq!(
            stored.iter().map(|it| decode(it)).collect::<Vec<_>>(),
            texts
        );
        assert!(stored.iter().all(|it| !it.contains('\0')));
        stored.sort();
        stored.dedup();
        assert_eq!(stored.len(), texts.len());
    }
}
