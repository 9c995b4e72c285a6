//! Plans as to-do lists: started, updated when an entry appears or is done, completed.

use model::{ItemId, Plan, PlanStatus};

use super::{Thread, ThreadProfile, line, take};
use crate::wire::thread as wire;

#[derive(Clone, Debug)]
pub(super) struct ThreadPlan {
    item: ItemId<'static>,
    id: String,
    todos: Vec<wire::TodoItem>,
}

impl Thread {
    pub(super) fn plan_opened(&mut self, plan: &Plan<'_>, out: &mut Vec<u8>) {
        if self.turns.profile == ThreadProfile::Seed {
            // The plan of the OpenAgents bridge has no `todo_list`.
            return self.losses.count("plan");
        }
        self.turns.begin(out);
        let open = ThreadPlan {
            item: plan.id.clone().into_owned(),
            id: self.turns.kept_id(plan.id.as_str()),
            todos: todos(plan),
        };
        let item = open.todo_list();
        line(out, &wire::ThreadEvent::ItemStarted { item });
        self.plans.push(open);
    }

    pub(super) fn plan_updated(&mut self, plan: &Plan<'_>, out: &mut Vec<u8>) {
        let todos = todos(plan);
        // Which entry is being done has no place here, and no line is better than the same line.
        if let Some(open) = self.plans.iter_mut().find(|it| it.item == plan.id)
            && open.todos != todos
        {
            open.todos = todos;
            let item = open.todo_list();
            line(out, &wire::ThreadEvent::ItemUpdated { item });
        }
    }

    pub(super) fn plan_closed(&mut self, plan: &Plan<'_>, out: &mut Vec<u8>) {
        if let Some(mut open) = take(&mut self.plans, |it| it.item == plan.id) {
            open.todos = todos(plan);
            let item = open.todo_list();
            line(out, &wire::ThreadEvent::ItemCompleted { item });
        }
    }
}

impl ThreadPlan {
    pub(super) fn todo_list(&self) -> wire::ThreadItem<'_> {
        let details = wire::Details::TodoList { items: &self.todos };
        let id = &self.id;
        wire::ThreadItem { id, details }
    }
}

fn todos(plan: &Plan<'_>) -> Vec<wire::TodoItem> {
    let todo = |it: &model::PlanEntry<'_>| wire::TodoItem {
        text: it.text.clone().into_owned(),
        completed: it.status == PlanStatus::Completed,
    };
    plan.entries.iter().map(todo).collect()
}
