//! Plans: the words for how far an entry is, and the to-do lists that a tool call gives whole, as
//! OpenCode's `todowrite` and Gemini's `write_todos` do.

use model::{PlanEntry, PlanStatus};

use crate::wire::lenient::{Any, List, Str};
use crate::wire::scanner;

/// Entries kept; the rest of a longer list is not shown.
pub(super) const MAX_ENTRIES: usize = 1024;

object! {
    TodosInput {
        todos: List<TodoEntry<'a>> = "todos",
    }

    TodoEntry {
        content: Any<'a> = "content",
        description: Any<'a> = "description",
        status: Str<'a> = "status",
    }
}

/// How far an entry is, in the words of all agents.
pub(super) fn status(word: Option<&str>) -> PlanStatus {
    match word {
        Some("in_progress" | "inProgress") => PlanStatus::InProgress,
        Some("completed" | "done") => PlanStatus::Completed,
        Some(_) | None => PlanStatus::Pending,
    }
}

/// The entries of `{"todos": [...]}`; none when there is no such list. What was given up is left out.
pub(super) fn entries(json: &str) -> Option<Vec<PlanEntry<'static>>> {
    let input: TodosInput<'_> = scanner::from_str(json).ok()?;
    let entries = input.todos.0.into_iter().filter_map(entry);
    let entries: Vec<_> = entries.take(MAX_ENTRIES).collect();
    // An emptied list is news, a call without any list is none.
    (!entries.is_empty() || json.contains("\"todos\"")).then_some(entries)
}

fn entry(todo: TodoEntry<'_>) -> Option<PlanEntry<'static>> {
    let text = todo.content.text().or(todo.description.text())?;
    let word = todo.status.as_deref();
    let status = status(word);
    // The model of a plan has no state for it; as pending or done it would be wrong.
    (word != Some("cancelled")).then(|| PlanEntry::new(text.into_owned(), status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_both_spellings_are_read() {
        let json = r#"{"todos":[{"content":"A","status":"completed"},{"description":"B"},{"content":"C","status":"cancelled"}]}"#;
        let read = entries(json).unwrap();
        let read: Vec<_> = read
            .iter()
            .map(|it| (it.text.to_string(), it.status))
            .collect();
        assert_eq!(
            read,
            [
                ("A".to_owned(), PlanStatus::Completed),
                ("B".to_owned(), PlanStatus::Pending)
            ]
        );
        assert_eq!(entries("{}"), None);
        assert_eq!(entries(r#"{"todos":[]}"#), Some(Vec::new()));
    }
}
