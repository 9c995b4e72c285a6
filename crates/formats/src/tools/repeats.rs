//! How much of its input a class repeats.
//!
//! A title, a command and a diff are pieces of the input, which stands beside them in every event. A file of
//! many megabytes that is written would be held, sent and stored twice. Paths stay whole: rules are applied
//! to them.

use model::{Class, Diff, Text};

/// Bytes of a title: one line for people.
const MAX_TITLE: usize = 64 << 10;
/// Bytes of one other text.
const MAX_TEXT: usize = 1 << 20;
/// Bytes of all texts of a class together.
const MAX_TEXTS: usize = 4 << 20;
/// Bytes kept of a text that is longer: nobody reads more of it here.
const START_KEPT: usize = 64 << 10;

/// Shortens what is too long to be repeated, each text saying so.
pub(super) fn shorten(class: &mut Class<'_>) {
    let Class {
        title,
        command,
        query,
        diffs,
        ..
    } = class;
    *title = std::mem::take(title).shortened(MAX_TITLE);
    let diffs = diffs
        .iter_mut()
        .flat_map(|Diff { old, new, .. }| old.iter_mut().chain([new]));
    let mut room = MAX_TEXTS;
    for text in command.iter_mut().chain(query).chain(diffs) {
        let limit = room.min(MAX_TEXT);
        let kept = match text.len_bound() {
            length if length <= limit => length,
            _ => limit.min(START_KEPT),
        };
        // Cannot underflow: `kept` is at most `limit`, and `limit` at most `room`.
        room -= kept;
        *text = std::mem::take::<Text<'_>>(text).shortened(kept);
    }
}

#[cfg(test)]
mod tests {
    use model::ToolKind;

    use super::*;

    fn lengths(class: &Class<'_>) -> Vec<usize> {
        let diffs = class.diffs.iter().map(|it| it.new.len_bound());
        let command = class.command.iter().map(Text::len_bound);
        [class.title.len_bound()]
            .into_iter()
            .chain(command)
            .chain(diffs)
            .collect()
    }

    fn written(contents: &[usize]) -> Class<'static> {
        let mut class = Class::plain(ToolKind::Edit, Text::new("Edit a"));
        let diffs = contents.iter().map(|it| Diff {
            path: Text::new("a"),
            old: None,
            new: Text::new("x".repeat(*it)),
        });
        class.diffs = diffs.collect();
        class
    }

    #[test]
    fn texts_up_to_the_limit_stay_whole() {
        let mut class = written(&[MAX_TEXT, 7]);
        let before = class.clone();
        shorten(&mut class);
        assert_eq!(class, before);
    }

    #[test]
    fn a_long_text_says_how_much_is_missing() {
        let mut class = written(&[MAX_TEXT + 5]);
        class.title = Text::new("x".repeat(MAX_TITLE + 1));
        shorten(&mut class);
        let kept = "x".repeat(START_KEPT);
        let missing = MAX_TEXT + 5 - START_KEPT;
        assert_eq!(
            (&class.title, &class.diffs[0].new),
            (
                &Text::new(format!("{}… [1 bytes cut]", "x".repeat(MAX_TITLE))),
                &Text::new(format!("{kept}… [{missing} bytes cut]"))
            )
        );
    }

    #[test]
    fn many_texts_share_one_limit() {
        let mut class = written(&[MAX_TEXT; 6]);
        class.command = Some(Text::new("x".repeat(MAX_TEXT - 1)));
        shorten(&mut class);
        let mark = |missing: usize| format!("… [{missing} bytes cut]").len();
        let expected = [
            "Edit a".len(),
            MAX_TEXT - 1,
            MAX_TEXT,
            MAX_TEXT,
            MAX_TEXT,
            1 + mark(MAX_TEXT - 1),
            mark(MAX_TEXT),
            mark(MAX_TEXT),
        ];
        assert_eq!(lengths(&class), expected);
    }
}
