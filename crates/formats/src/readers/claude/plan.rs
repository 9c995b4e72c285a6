//! The plan, put together from the calls that change it: `TodoWrite` gives the whole list,
//! `TaskCreate` and `TaskUpdate` one entry at a time. Only calls that worked count.

use std::borrow::Cow;

use model::{Item, ItemId, Plan, PlanEntry, PlanStatus, Raw, Text};
use serde::Deserialize;

use super::{Claude, FrameContext};
use crate::readers::plans::{self, MAX_ENTRIES};
use crate::wire::claude as wire;
use crate::wire::scanner;

#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    entries: Vec<PlanEntry<'static>>,
}

#[derive(Default, Deserialize)]
struct TaskToolInput {
    #[serde(default)]
    todos: Vec<TodoTask>,
    #[serde(default)]
    subject: Option<String>,
    #[serde(default, rename = "activeForm")]
    active_form: Option<String>,
    #[serde(default, rename = "taskId")]
    task_id: Option<String>,
    #[serde(default)]
    status: Option<String>,
}

#[derive(Deserialize)]
struct TodoTask {
    content: String,
    #[serde(default)]
    status: Option<String>,
    #[serde(default, rename = "activeForm")]
    active_form: Option<String>,
}

impl Claude {
    /// A call of a task tool has worked: shows the plan it leaves.
    pub(super) fn task_tool_done(
        &mut self,
        cx: &mut FrameContext<'_>,
        id: &ItemId<'_>,
        result: &wire::ToolUseResult<'_>,
    ) {
        let Some(tool) = self.lifecycle.open_tool(id) else {
            return;
        };
        let input = tool.input.as_ref().map(read).unwrap_or_default();
        let has_changed = match &*tool.name {
            "TodoWrite" => self.tasks.replace(input.todos),
            "TaskCreate" => self.tasks.create(input, result.task.id.as_deref()),
            "TaskUpdate" => self.tasks.update(input),
            _ => false,
        };
        if has_changed {
            let plan = Plan {
                id: ItemId::new("plan"),
                entries: self.tasks.entries.clone(),
            };
            // There is one list for the session, whichever sub-agent writes to it.
            cx.inside(&[], |cx| self.lifecycle.update(cx, Item::Plan(plan)));
        }
    }
}

impl Tasks {
    fn replace(&mut self, todos: Vec<TodoTask>) -> bool {
        self.entries = todos
            .into_iter()
            .take(MAX_ENTRIES)
            .map(|todo| PlanEntry {
                doing: todo.active_form.map(Text::new),
                ..PlanEntry::new(todo.content.into(), plans::status(todo.status.as_deref()))
            })
            .collect();
        true
    }

    fn create(&mut self, input: TaskToolInput, id: Option<&str>) -> bool {
        let Some(subject) = input.subject.filter(|_| self.entries.len() < MAX_ENTRIES) else {
            return false;
        };
        self.entries.push(PlanEntry {
            // Only the result has the id that later calls name.
            key: id.map(|it| Cow::Owned(it.to_owned())),
            doing: input.active_form.map(Text::new),
            ..PlanEntry::new(subject.into(), PlanStatus::Pending)
        });
        true
    }

    fn update(&mut self, input: TaskToolInput) -> bool {
        let mut entries = self.entries.iter();
        let Some(at) = entries.position(|it| it.key.as_deref() == input.task_id.as_deref()) else {
            return false;
        };
        if input.status.as_deref() == Some("deleted") {
            self.entries.remove(at);
            return true;
        }
        let entry = &mut self.entries[at];
        if let Some(subject) = input.subject {
            entry.text = Text::new(subject);
        }
        if let Some(active_form) = input.active_form {
            entry.doing = Some(Text::new(active_form));
        }
        if input.status.is_some() {
            entry.status = plans::status(input.status.as_deref());
        }
        true
    }
}

fn read(input: &Raw<'_>) -> TaskToolInput {
    scanner::from_str(input.get()).unwrap_or_default()
}
