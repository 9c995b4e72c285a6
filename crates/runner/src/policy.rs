//! The policy: answers asks without a client, by the permission mode.

use std::path::{Component, Path, PathBuf};

use model::{Ask, AskKind, ToolKind};

use crate::request::{Answer, Mode, Permissions};

/// An open ask and the kind of its tool.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingAsk {
    pub ask: Ask<'static>,
    pub kind: ToolKind,
    /// The files that the call names, absolute or relative to `cwd`.
    pub paths: Vec<PathBuf>,
    /// Where the agent works; none for a recording.
    pub cwd: Option<PathBuf>,
}

/// What `listed` allows when neither the caller nor the config has a list.
const LISTED: &[ToolKind] = &[
    ToolKind::Shell,
    ToolKind::Read,
    ToolKind::Edit,
    ToolKind::Write,
];

/// Folders of the working directory that decide what programs run: changing them is no mere edit.
pub(crate) const SPECIAL: &[&str] = &[
    ".git",
    ".claude",
    ".codex",
    ".gemini",
    ".opencode",
    ".vscode",
    ".husky",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyDecision {
    Settle(Answer),
    /// A client has to decide.
    Ask,
}

/// Decides an ask by the permissions. `deny` wins over every list and every mode.
pub fn decide(permissions: &Permissions, asked: &PendingAsk) -> PolicyDecision {
    let deny = |message: String| PolicyDecision::Settle(Answer::Deny { message });
    let allow = PolicyDecision::Settle(Answer::Allow { input: None });
    let tool = &*asked.ask.tool;
    if permissions.deny.iter().any(|it| names(it, asked)) {
        return deny(format!("`{tool}` is not allowed here"));
    }
    let is_permission = asked.ask.kind == AskKind::Permission;
    // A list names tools; it cannot approve a plan or answer a question.
    let is_listed = is_permission && is_listed(permissions, asked);
    match permissions.mode {
        // Before the lists: in `plan` nothing is changed, whatever they allow.
        Mode::Plan if is_permission && can_change(asked.kind) => {
            deny("this is for planning: nothing may be changed".to_owned())
        }
        _ if is_listed => allow,
        Mode::Deny | Mode::Listed => deny(no_one_to_ask_message(asked)),
        Mode::Plan | Mode::Ask => PolicyDecision::Ask,
        // A plan is there to be approved, and a question to be answered.
        Mode::AcceptEdits | Mode::Allow if !is_permission => PolicyDecision::Ask,
        Mode::AcceptEdits if is_edit(asked.kind) && is_below_cwd(asked) => allow,
        Mode::AcceptEdits => PolicyDecision::Ask,
        Mode::Allow => allow,
    }
}

/// Whether the list of the run names the tool. Only `listed` has one without being given any.
fn is_listed(permissions: &Permissions, asked: &PendingAsk) -> bool {
    match (&permissions.allow, permissions.mode) {
        (Some(list), _) => list.iter().any(|it| names(it, asked)),
        (None, Mode::Listed) => LISTED.contains(&asked.kind),
        (None, Mode::Plan | Mode::Deny | Mode::Ask | Mode::AcceptEdits | Mode::Allow) => false,
    }
}

/// Whether the call names the files that it changes, and all of them are below the working directory.
/// Links are followed, and folders that decide what programs run do not count.
fn is_below_cwd(asked: &PendingAsk) -> bool {
    // Resolved as the paths are, or a working directory behind a link would have nothing below it.
    let cwd = asked.cwd.as_ref().and_then(|it| it.canonicalize().ok());
    let Some(cwd) = cwd else {
        return false;
    };
    let paths = &asked.paths;
    let is_below = |path: &PathBuf| {
        // An absolute path replaces the working directory in `join`, as it should.
        let real = real_path(&cwd.join(path));
        let inner = real.as_deref().and_then(|it| it.strip_prefix(&cwd).ok());
        inner.is_some_and(|it| {
            let mut parts = it.components();
            !parts.any(|it| SPECIAL.iter().any(|name| it.as_os_str() == *name))
        })
    };
    // A call that names no file may change any.
    !paths.is_empty() && paths.iter().all(is_below)
}

/// The path without links; its end need not exist yet. None when it cannot be resolved.
fn real_path(path: &Path) -> Option<PathBuf> {
    if path.components().any(|it| it == Component::ParentDir) {
        // What `..` means depends on links on the way, so the way has to be there.
        return path.canonicalize().ok();
    }
    let mut rest = Vec::new();
    let mut there = path;
    loop {
        // Of the link itself: a dangling one is there, and must not pass for a new file.
        match there.symlink_metadata() {
            Ok(_) => break,
            Err(_) => {
                rest.push(there.file_name()?);
                there = there.parent()?;
            }
        }
    }
    // A dangling link is not followed.
    let mut real = there.canonicalize().ok()?;
    real.extend(rest.into_iter().rev());
    Some(real)
}

/// The message of a denial when no client can decide.
pub fn no_one_to_ask_message(asked: &PendingAsk) -> String {
    match asked.ask.kind {
        AskKind::Permission => format!(
            "`{}` was not allowed beforehand, and nobody can be asked",
            asked.ask.tool
        ),
        AskKind::Question | AskKind::Plan => "nobody is there to answer".to_owned(),
    }
}

/// True when an entry of a list names the tool, by its own name or by its kind.
fn names(entry: &str, asked: &PendingAsk) -> bool {
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

    fn ask(kind: AskKind, tool: &'static str, of: ToolKind) -> PendingAsk {
        PendingAsk {
            ask: Ask {
                id: AskId::new("a"),
                kind,
                item: None,
                tool: tool.into(),
                title: Text::new(tool),
                description: None,
                input: None,
                suggestions: None,
                deadline: None,
            },
            kind: of,
            paths: Vec::new(),
            cwd: None,
        }
    }

    fn message_of(mode: Mode, allow: &[&str], deny: &[&str], asked: &PendingAsk) -> String {
        let own = |it: &[&str]| -> Vec<String> { it.iter().map(|it| (*it).to_owned()).collect() };
        let permissions = Permissions {
            mode,
            allow: (!allow.is_empty()).then(|| own(allow)),
            deny: own(deny),
        };
        match decide(&permissions, asked) {
            PolicyDecision::Ask => "ask".to_owned(),
            PolicyDecision::Settle(Answer::Deny { message }) => message,
            PolicyDecision::Settle(Answer::Allow { input: None }) => "allow".to_owned(),
            PolicyDecision::Settle(other) => format!("{other:?}"),
        }
    }

    #[test]
    fn every_mode_has_its_answer() {
        let shell = ask(AskKind::Permission, "Bash", ToolKind::Shell);
        let edit = ask(AskKind::Permission, "Edit", ToolKind::Edit);
        let question = ask(AskKind::Question, "AskUserQuestion", ToolKind::Ask);
        let nobody = "`Bash` was not allowed beforehand, and nobody can be asked";
        let planning = "this is for planning: nothing may be changed";
        let rows = [
            (Mode::Ask, ["ask", "ask", "ask"]),
            (Mode::Allow, ["allow", "allow", "ask"]),
            // It names no file, so it may be one elsewhere.
            (Mode::AcceptEdits, ["ask", "ask", "ask"]),
            (Mode::Plan, [planning, planning, "ask"]),
            (
                Mode::Listed,
                ["allow", "allow", "nobody is there to answer"],
            ),
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
            let got = [&shell, &edit, &question].map(|it| message_of(mode, &[], &[], it));
            assert_eq!(got, expected, "{mode:?}");
        }
    }

    #[test]
    fn planning_asks_for_looks_and_approvals_and_denies_changes() {
        let plan = ask(AskKind::Plan, "ExitPlanMode", ToolKind::Mode);
        assert_eq!(message_of(Mode::Plan, &[], &[], &plan), "ask");
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
            kinds.map(|it| message_of(Mode::Plan, &[], &[], &ask(AskKind::Permission, "t", it)));
        let planning = "this is for planning: nothing may be changed";
        let expected = std::array::from_fn(|at| if at < 5 { "ask" } else { planning });
        assert_eq!(shown, expected);
        let shell = ask(AskKind::Permission, "Bash", ToolKind::Shell);
        assert_eq!(message_of(Mode::Plan, &["Bash"], &[], &shell), planning);
        let fetch = ask(AskKind::Permission, "WebFetch", ToolKind::Fetch);
        assert_eq!(message_of(Mode::Plan, &["WebFetch"], &[], &fetch), "allow");
    }

    #[test]
    fn a_list_replaces_that_of_listed_and_a_denial_wins() {
        let shell = ask(AskKind::Permission, "Bash", ToolKind::Shell);
        let read = ask(AskKind::Permission, "Read", ToolKind::Read);
        let fetch = ask(AskKind::Permission, "WebFetch", ToolKind::Fetch);
        let answers = |allow: &[&str], deny: &[&str]| {
            [&shell, &read, &fetch].map(|it| message_of(Mode::Listed, allow, deny, it) == "allow")
        };
        assert_eq!(answers(&[], &[]), [true, true, false]);
        assert_eq!(answers(&["Read"], &[]), [false, true, false]);
        assert_eq!(answers(&["webfetch"], &[]), [false, false, true]);
        assert_eq!(answers(&[], &["shell"]), [false, true, false]);
        let nothing = Permissions {
            mode: Mode::Listed,
            allow: Some(Vec::new()),
            deny: Vec::new(),
        };
        let denied = "`Bash` was not allowed beforehand, and nobody can be asked".to_owned();
        let answer = Answer::Deny { message: denied };
        assert_eq!(decide(&nothing, &shell), PolicyDecision::Settle(answer));
    }

    #[test]
    fn only_changes_below_the_working_directory_are_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path().join("work");
        std::fs::create_dir_all(cwd.join(".git/hooks")).unwrap();
        std::fs::create_dir(folder.path().join("other")).unwrap();
        std::os::unix::fs::symlink("../other", cwd.join("link")).unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", cwd.join("dangling")).unwrap();
        std::fs::write(cwd.join("there.txt"), "").unwrap();
        let accepted = |paths: &[&str]| {
            let mut edit = ask(AskKind::Permission, "Edit", ToolKind::Edit);
            edit.paths = paths.iter().map(PathBuf::from).collect();
            edit.cwd = Some(cwd.clone());
            message_of(Mode::AcceptEdits, &[], &[], &edit) == "allow"
        };
        let absolute = cwd.join("new/deep.txt");
        let absolute = absolute.to_str().unwrap();
        assert!(accepted(&["there.txt"]));
        assert!(accepted(&["new.txt", "there.txt", absolute]));
        for paths in [
            &[][..],
            &["/etc/passwd"],
            &["../other/x"],
            &["there.txt", "/etc/passwd"],
            &["link/x"],
            &["dangling"],
            &["new/../../other/x"],
            &[".git/hooks/pre-commit"],
            &[".claude/settings.json"],
        ] {
            assert!(!accepted(paths), "{paths:?}");
        }
        let mut edit = ask(AskKind::Permission, "Edit", ToolKind::Edit);
        edit.paths = vec![cwd.join("there.txt")];
        assert_eq!(message_of(Mode::AcceptEdits, &[], &[], &edit), "ask");
    }

    #[test]
    fn the_lists_come_first_and_deny_before_allow() {
        let shell = ask(AskKind::Permission, "Bash", ToolKind::Shell);
        assert_eq!(message_of(Mode::Deny, &["bash"], &[], &shell), "allow");
        assert_eq!(message_of(Mode::Deny, &["shell"], &[], &shell), "allow");
        assert_eq!(
            message_of(Mode::Allow, &["Bash"], &["Bash"], &shell),
            "`Bash` is not allowed here"
        );
        let question = ask(AskKind::Question, "Bash", ToolKind::Ask);
        assert_eq!(message_of(Mode::Ask, &["Bash"], &[], &question), "ask");
    }
}
