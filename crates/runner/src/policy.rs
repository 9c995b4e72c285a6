//! What is answered to an ask when nobody has to be bothered with it.

use model::{Ask, AskKind, ToolKind};

use crate::request::{Answer, Mode, Permissions};

/// An ask that waits, and what kind of tool it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub ask: Ask<'static>,
    pub kind: ToolKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Settle(Answer),
    /// Somebody has to decide.
    Ask,
}

/// What the permissions say to an ask. The lists come first: they name the tool.
pub fn verdict(permissions: &Permissions, asked: &Asked) -> Verdict {
    let deny = |message: String| Verdict::Settle(Answer::Deny { message });
    let allow = Verdict::Settle(Answer::Allow { input: None });
    let tool = &*asked.ask.tool;
    if permissions.deny.iter().any(|it| names(it, asked)) {
        return deny(format!("`{tool}` is not allowed here"));
    }
    let is_permission = asked.ask.kind == AskKind::Permission;
    if is_permission && permissions.allow.iter().any(|it| names(it, asked)) {
        return allow;
    }
    match permissions.mode {
        Mode::Ask => Verdict::Ask,
        // A plan is there to be approved, and a question to be answered.
        Mode::Allow | Mode::AcceptEdits | Mode::Plan if !is_permission => Verdict::Ask,
        Mode::Allow => allow,
        Mode::AcceptEdits if is_edit(asked.kind) => allow,
        Mode::AcceptEdits => Verdict::Ask,
        Mode::Plan if !can_change(asked.kind) => Verdict::Ask,
        Mode::Plan => deny("this is for planning: nothing may be changed".to_owned()),
        Mode::Deny => deny(nobody(asked)),
    }
}

/// What an ask is answered with when there is nobody to decide.
pub fn nobody(asked: &Asked) -> String {
    match asked.ask.kind {
        AskKind::Permission => format!(
            "`{}` was not allowed beforehand, and nobody can be asked",
            asked.ask.tool
        ),
        AskKind::Question | AskKind::Plan => "nobody is there to answer".to_owned(),
    }
}

/// True when an entry of a list names the tool, by its own name or by its kind.
fn names(entry: &str, asked: &Asked) -> bool {
    entry.eq_ignore_ascii_case(&asked.ask.tool) || entry.eq_ignore_ascii_case(asked.kind.name())
}

fn is_edit(kind: ToolKind) -> bool {
    match kind {
        ToolKind::Edit | ToolKind::Write | ToolKind::Delete | ToolKind::Move => true,
        ToolKind::Shell
        | ToolKind::Read
        | ToolKind::Search
        | ToolKind::Fetch
        | ToolKind::WebSearch
        | ToolKind::Mcp
        | ToolKind::Task
        | ToolKind::Todo
        | ToolKind::Ask
        | ToolKind::Think
        | ToolKind::Mode
        | ToolKind::Other => false,
    }
}

/// Whether a tool of this kind may leave something changed; unknown ones may.
fn can_change(kind: ToolKind) -> bool {
    match kind {
        ToolKind::Shell | ToolKind::Mcp | ToolKind::Other => true,
        ToolKind::Edit | ToolKind::Write | ToolKind::Delete | ToolKind::Move => true,
        ToolKind::Read | ToolKind::Search | ToolKind::Fetch | ToolKind::WebSearch => false,
        // What a sub-agent wants to change, it asks for by itself.
        ToolKind::Task => false,
        ToolKind::Todo | ToolKind::Ask | ToolKind::Think | ToolKind::Mode => false,
    }
}

#[cfg(test)]
mod tests {
    use model::{AskId, Text};

    use super::*;

    fn asked(kind: AskKind, tool: &'static str, of: ToolKind) -> Asked {
        Asked {
            ask: Ask {
                id: AskId::new("a"),
                kind,
                item: None,
                tool: tool.into(),
                title: Text::new(tool),
                description: None,
                input: None,
                suggestions: None,
            },
            kind: of,
        }
    }

    fn said(mode: Mode, allow: &[&str], deny: &[&str], asked: &Asked) -> String {
        let own = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect();
        let permissions = Permissions {
            mode,
            allow: own(allow),
            deny: own(deny),
        };
        match verdict(&permissions, asked) {
            Verdict::Ask => "ask".to_owned(),
            Verdict::Settle(Answer::Deny { message }) => message,
            Verdict::Settle(Answer::Allow { input: None }) => "allow".to_owned(),
            Verdict::Settle(other) => format!("{other:?}"),
        }
    }

    #[test]
    fn every_mode_has_its_answer() {
        let shell = asked(AskKind::Permission, "Bash", ToolKind::Shell);
        let edit = asked(AskKind::Permission, "Edit", ToolKind::Edit);
        let question = asked(AskKind::Question, "AskUserQuestion", ToolKind::Ask);
        let nobody = "`Bash` was not allowed beforehand, and nobody can be asked";
        let planning = "this is for planning: nothing may be changed";
        let rows = [
            (Mode::Ask, ["ask", "ask", "ask"]),
            (Mode::Allow, ["allow", "allow", "ask"]),
            (Mode::AcceptEdits, ["ask", "allow", "ask"]),
            (Mode::Plan, [planning, planning, "ask"]),
            (
                Mode::Deny,
                [
                    nobody,
                    "`Edit` was not allowed beforehand, and nobody can be asked",
                    "nobody is there to answer",
                ],
            ),
        ];
        for (mode, expected) in rows {
            let got = [&shell, &edit, &question].map(|it| said(mode, &[], &[], it));
            assert_eq!(got, expected, "{mode:?}");
        }
    }

    #[test]
    fn planning_asks_for_looks_and_approvals_and_denies_changes() {
        let plan = asked(AskKind::Plan, "ExitPlanMode", ToolKind::Mode);
        assert_eq!(said(Mode::Plan, &[], &[], &plan), "ask");
        let kinds = [
            ToolKind::Read,
            ToolKind::Search,
            ToolKind::Fetch,
            ToolKind::WebSearch,
            ToolKind::Task,
            ToolKind::Shell,
            ToolKind::Edit,
            ToolKind::Write,
            ToolKind::Delete,
            ToolKind::Move,
            ToolKind::Mcp,
            ToolKind::Other,
        ];
        let shown =
            kinds.map(|it| said(Mode::Plan, &[], &[], &asked(AskKind::Permission, "t", it)));
        let planning = "this is for planning: nothing may be changed";
        let expected = std::array::from_fn(|at| if at < 5 { "ask" } else { planning });
        assert_eq!(shown, expected);
        let shell = asked(AskKind::Permission, "Bash", ToolKind::Shell);
        assert_eq!(said(Mode::Plan, &["Bash"], &[], &shell), "allow");
    }

    #[test]
    fn the_lists_come_first_and_deny_before_allow() {
        let shell = asked(AskKind::Permission, "Bash", ToolKind::Shell);
        assert_eq!(said(Mode::Deny, &["bash"], &[], &shell), "allow");
        assert_eq!(said(Mode::Deny, &["shell"], &[], &shell), "allow");
        assert_eq!(
            said(Mode::Allow, &["Bash"], &["Bash"], &shell),
            "`Bash` is not allowed here"
        );
        let question = asked(AskKind::Question, "Bash", ToolKind::Ask);
        assert_eq!(said(Mode::Ask, &["Bash"], &[], &question), "ask");
    }
}
