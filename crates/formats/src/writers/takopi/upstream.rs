//! The shapes of takopi 0.22.3 itself, oddities included.
//!
//! Facts: `runners/tool_actions.py` and `runners/claude.py` of that version, and what its own runner
//! was seen to emit (`fixtures/takopi/expected`). Takopi tells tools apart by name, so this does too.

pub(super) mod opencode;

use model::{Raw, RunEnded, Text, Tool};

use super::super::{content, line};
use super::notes::Note;
use super::session::TakopiSession;
use super::{Takopi, end, tools};
use crate::wire::lenient::{Any, Object as _};
use crate::wire::scanner;
use crate::wire::takopi::{self as wire, Kind};

pub(super) fn heading<'t>(
    tool: &'t Tool<'_>,
    is_orphan: bool,
    cwd: Option<&str>,
) -> (Kind, Text<'t>) {
    if is_orphan {
        return (Kind::Tool, Text::new("tool result"));
    }
    let input = input(tool);
    let path = || path(&input).map(|it| tools::relative(&it, cwd).into_owned());
    let name = || Text::new(&*tool.name);
    match &*tool.name.to_ascii_lowercase() {
        "bash" | "shell" | "killshell" => {
            let command = text_of(input.command).map(|it| without_cwd(it, cwd));
            (Kind::Command, command.unwrap_or_else(name))
        }
        "edit" | "write" | "notebookedit" | "multiedit" => {
            (Kind::FileChange, path().unwrap_or_else(name))
        }
        "read" => (Kind::Tool, labelled("read", path(), "`")),
        "ls" => (Kind::Tool, labelled("ls", path(), "`")),
        "glob" => (Kind::Tool, labelled("glob", text_of(input.pattern), "`")),
        "grep" => (Kind::Tool, labelled("grep", text_of(input.pattern), "")),
        "find" => (Kind::Tool, labelled("find", text_of(input.pattern), "")),
        "websearch" | "web_search" => (
            Kind::WebSearch,
            text_of(input.query).unwrap_or(Text::new("search")),
        ),
        "webfetch" | "web_fetch" => (
            Kind::WebSearch,
            text_of(input.url).unwrap_or(Text::new("fetch")),
        ),
        "todowrite" => (Kind::Note, Text::new("update todos")),
        "todoread" => (Kind::Note, Text::new("read todos")),
        "askuserquestion" => (Kind::Note, Text::new("ask user")),
        "task" | "agent" => {
            let title = text_of(input.description).or_else(|| text_of(input.prompt));
            (Kind::Subagent, title.unwrap_or_else(name))
        }
        _ => (Kind::Tool, name()),
    }
}

pub(super) fn detail<'t>(
    tool: &'t Tool<'_>,
    kind: Kind,
    parent: Option<&'t str>,
    is_closed: bool,
) -> wire::UpstreamDetail<'t> {
    // Takopi looks the name up by the call, and a call it never saw has none.
    let is_orphan = tool.input.is_none();
    let path = if kind == Kind::FileChange {
        path(&input(tool))
    } else {
        None
    };
    let change = |path| wire::Change {
        path,
        // Takopi says this of new files as well.
        kind: wire::ChangeKind::Update,
    };
    let preview = tool.result.as_ref().map(|it| content::text(&it.content));
    wire::UpstreamDetail {
        name: Some(&*tool.name).filter(|_| !is_orphan),
        input: tool.input.as_ref(),
        parent_tool_use_id: parent.filter(|_| !is_orphan),
        changes: path.map(change).into_iter().collect(),
        tool_use_id: is_closed.then(|| tool.id.as_str()),
        result_len: preview.as_ref().map(|it| it.to_str().chars().count()),
        result_preview: preview,
        is_error: tool.result.as_ref().map(|it| it.is_error),
    }
}

/// The title of a session whose model is not known.
pub(super) fn session_title(engine: &str) -> Option<&'static str> {
    (engine == opencode::ENGINE).then_some("opencode")
}

impl Takopi {
    /// Takes the session from the result, where nothing before it named one: a run that is
    /// completed with a session was started with it.
    pub(super) fn learn_from_result(&mut self, ended: &RunEnded<'_>) {
        if self.session.is_some() {
            return;
        }
        let frame = ended.detail.as_ref().and_then(|it| parse(it));
        let named = frame.as_ref().and_then(|it| it.session_id.as_deref());
        self.session = named.map(TakopiSession::new);
    }

    pub(super) fn upstream_end(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        // Takopi 0.22.3 does not read `permission_denials`.
        for _ in &ended.denials {
            self.losses.count("permission denial");
        }
        let frame = ended.detail.as_ref().and_then(|it| parse(it));
        let (answer, error) = match &frame {
            Some(frame) => self.result(ended, frame),
            None => self.no_result(ended, out),
        };
        let answer = if self.engine == opencode::ENGINE {
            Text::new(std::mem::take(&mut self.run.words))
        } else {
            answer
        };
        let completed = wire::Completed {
            usage: frame.as_ref().map(usage),
            ..self.completed(answer, error)
        };
        line(out, &completed);
    }

    /// The answer and the error of a run with a reported end.
    fn result<'a>(
        &self,
        ended: &'a RunEnded<'_>,
        frame: &wire::ResultFrame<'a>,
    ) -> (Text<'a>, Option<Text<'a>>) {
        let result = text_of(frame.result);
        if !frame.is_error.is_true() {
            let answer = result.or_else(|| ended.answer.as_ref().map(Text::by_ref));
            let error = end::error(ended).filter(|_| !end::is_ok(ended.outcome));
            return (answer.unwrap_or_default(), error);
        }
        let error = result.clone();
        let error = error.unwrap_or_else(|| match frame.subtype.as_deref() {
            Some(subtype) => Text::new(format!("{} run failed ({subtype})", self.engine)),
            None => Text::new(format!("{} run failed", self.engine)),
        });
        (result.unwrap_or_default(), Some(error))
    }

    /// The answer and the error of a run without a reported end.
    fn no_result<'a>(
        &mut self,
        ended: &'a RunEnded<'_>,
        out: &mut Vec<u8>,
    ) -> (Text<'a>, Option<Text<'a>>) {
        let error = end::error(ended);
        match ended.error.as_ref().map(|it| &*it.code) {
            Some("crashed") => {
                // Takopi ends the message about an exit code with a full stop, and repeats it as a warning.
                let error = error.unwrap_or_default().to_str().into_owned() + ".";
                let detail = wire::NoDetail {};
                let title = Text::new(&*error);
                self.note(out, Note::new(wire::Level::Warning, title, detail));
                (Text::EMPTY, Some(Text::new(error)))
            }
            // Takopi reports this error without an answer.
            Some("no_session") => (Text::EMPTY, error),
            Some(_) | None => (end::answer(ended), error),
        }
    }
}

fn parse<'a>(detail: &'a Raw<'_>) -> Option<wire::ResultFrame<'a>> {
    let frame: wire::ResultFrame<'a> = scanner::from_str(detail.get()).ok()?;
    frame.is_object().then_some(frame)
}

fn usage<'a>(frame: &wire::ResultFrame<'a>) -> Raw<'a> {
    Raw::of(&wire::UpstreamUsage {
        total_cost_usd: frame.total_cost_usd.raw(),
        duration_ms: frame.duration_ms.raw(),
        duration_api_ms: frame.duration_api_ms.raw(),
        num_turns: frame.num_turns.raw(),
        usage: frame.usage.raw(),
    })
}

fn input<'t>(tool: &'t Tool<'_>) -> wire::ToolInput<'t> {
    let input = tool.input.as_ref().map_or("null", Raw::get);
    scanner::from_str(input).unwrap_or_default()
}

fn path<'t>(input: &wire::ToolInput<'t>) -> Option<Text<'t>> {
    // Takopi does not look at `notebook_path`.
    text_of(input.file_path).or_else(|| text_of(input.path))
}

/// A value that is a string with something in it.
fn text_of(any: Any<'_>) -> Option<Text<'_>> {
    let raw = any.raw().filter(Raw::is_string)?;
    Some(Text::from(raw)).filter(|it| !it.is_empty())
}

fn labelled<'t>(label: &'static str, text: Option<Text<'_>>, quote: &str) -> Text<'t> {
    match text {
        Some(text) => Text::new(format!("{label}: {quote}{text}{quote}")),
        None => Text::new(label),
    }
}

fn without_cwd<'t>(command: Text<'t>, cwd: Option<&str>) -> Text<'t> {
    // With `/` every absolute path would lose its slash.
    let Some(cwd) = cwd.filter(|it| !it.is_empty() && *it != "/") else {
        return command;
    };
    let prefix = format!("{}/", cwd.trim_end_matches('/'));
    let text = command.to_str();
    if text.contains(&prefix) {
        return Text::new(text.replace(&prefix, ""));
    }
    // It borrows the command that is returned.
    drop(text);
    command
}
