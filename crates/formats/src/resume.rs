//! Resume lines: the one line in a chat message by which a session is found again.
//!
//! The forms are those of takopi 0.22.3 and of each agent's own command line: `claude --resume <id>`,
//! `codex resume <id>`, and so on; `linkspan run [--engine <engine>] --resume <id>` is one for every engine.
//! A line holds nothing else; quoted lines, `--resume=<id>` and the commands of any other program
//! (`vagrant resume box`) are prose.
//! Several engines' lines in one text: the last line wins, whichever engine it names.

use crate::agents::{self, AGENTS, AgentInfo, IdForm};

/// What a resume line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeLine {
    /// None where the line is linkspan's own and names no engine: the session has one.
    pub engine: Option<String>,
    pub id: String,
}

/// The resume line of a session, in backticks; none when the engine has none, or the id could not be
/// read back from it.
pub fn format(engine: &str, id: &str) -> Option<String> {
    let form = agents::find(engine)?.resume.as_ref()?;
    let words = form.words.first()?.join(" ");
    let id_text = match form.id {
        IdForm::Word | IdForm::OpenCode | IdForm::InBackticks => id.to_owned(),
        IdForm::Rest => quoted(id),
    };
    let line = format!("`{engine} {words} {id_text}`");
    // A line that could not be found again must not be offered.
    let read = parse(&line)?;
    (read.engine.as_deref() == Some(engine) && read.id == id).then_some(line)
}

/// Whether the resume line is a command of a program that users have.
pub(crate) fn is_offered(engine: &str) -> bool {
    let form = agents::find(engine).and_then(|it| it.resume.as_ref());
    form.is_some_and(|it| it.is_offered)
}

/// The last resume line in `text`.
pub fn parse(text: &str) -> Option<ResumeLine> {
    text.lines().rev().find_map(find)
}

/// `text` without its resume lines, and the last of them; when nothing else is left the text is `continue`.
pub fn strip(text: &str) -> (String, Option<ResumeLine>) {
    let mut last = None;
    let mut kept = Vec::new();
    for line in text.lines() {
        match find(line) {
            Some(found) => last = Some(found),
            None => kept.push(line),
        }
    }
    let rest = kept.join("\n").trim().to_owned();
    // A message of nothing but the line is still a prompt.
    if rest.is_empty() && last.is_some() {
        return ("continue".to_owned(), last);
    }
    (rest, last)
}

/// Reads one line.
fn find(line: &str) -> Option<ResumeLine> {
    let line = line.trim();
    let (line, is_quoted) = match line.strip_prefix('`') {
        Some(rest) => (rest, rest.ends_with('`')),
        None => (line, false),
    };
    let line = line.strip_suffix('`').unwrap_or(line);
    // Space right inside of the backticks: no resume line has it.
    if line.starts_with(char::is_whitespace) || line.ends_with(char::is_whitespace) {
        return None;
    }
    let found = AGENTS.iter().find_map(|it| {
        Some(ResumeLine {
            engine: Some(it.engine.to_owned()),
            id: find_id(it, line, is_quoted)?,
        })
    });
    found.or_else(|| find_own(line))
}

/// Reads a command of linkspan itself, with its two flags in either order.
fn find_own(line: &str) -> Option<ResumeLine> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (engine, id) = match *words.as_slice() {
        [program, run, resume, id] if is_own([program, run, resume]) => (None, id),
        [program, run, first, engine, resume, id]
            if is_own([program, run, resume]) && first.eq_ignore_ascii_case("--engine") =>
        {
            (Some(engine), id)
        }
        [program, run, resume, id, last, engine]
            if is_own([program, run, resume]) && last.eq_ignore_ascii_case("--engine") =>
        {
            (Some(engine), id)
        }
        _ => return None,
    };
    // A line of a chat must not name a command to start, as `acp:COMMAND` does.
    let is_name = |it: &str| !it.contains(':') || it.starts_with("responses:");
    let is_plain = !line.contains('`') && engine.is_none_or(is_name);
    is_plain.then(|| ResumeLine {
        engine: engine.map(str::to_owned),
        id: id.to_owned(),
    })
}

fn is_own(words: [&str; 3]) -> bool {
    let own = ["linkspan", "run", "--resume"];
    words
        .iter()
        .zip(own)
        .all(|(it, own)| it.eq_ignore_ascii_case(own))
}

/// The session id, if the line resumes a session of this agent.
fn find_id(agent: &AgentInfo, line: &str, is_quoted: bool) -> Option<String> {
    let form = agent.resume.as_ref()?;
    let (program, rest) = next_word(line)?;
    let is_strict = form.id == IdForm::InBackticks;
    let is = |word: &str, name: &str| match is_strict {
        true => word == name,
        false => word.eq_ignore_ascii_case(name),
    };
    if !is(program, agent.engine) {
        return None;
    }
    let after = |words: &&[&str]| {
        words.iter().try_fold(rest, |rest, name| {
            let (word, rest) = next_word(rest)?;
            is(word, name).then_some(rest)
        })
    };
    let id = form.words.iter().find_map(after)?;
    let is_word = !id.contains(char::is_whitespace) && !id.contains('`');
    match form.id {
        IdForm::Word => is_word.then(|| id.to_owned()),
        IdForm::OpenCode => (is_word && is_opencode(id)).then(|| id.to_owned()),
        IdForm::InBackticks => (is_word && is_quoted).then(|| id.to_owned()),
        IdForm::Rest => Some(unquoted(id)),
    }
}

/// A word, and what follows it; none when nothing does.
fn next_word(text: &str) -> Option<(&str, &str)> {
    let (word, rest) = text.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    (!rest.is_empty()).then_some((word, rest))
}

/// Pi's ids may be paths with spaces.
fn unquoted(id: &str) -> String {
    let inner = |quote| id.strip_prefix(quote).and_then(|it| it.strip_suffix(quote));
    match (inner('"'), inner('\'')) {
        (Some(inner), _) => inner.replace("\\\"", "\""),
        (None, Some(inner)) => inner.to_owned(),
        (None, None) => id.to_owned(),
    }
}

fn quoted(id: &str) -> String {
    if id.contains(|it: char| it.is_whitespace() || it == '"') {
        format!("\"{}\"", id.replace('"', "\\\""))
    } else {
        id.to_owned()
    }
}

fn is_opencode(id: &str) -> bool {
    id.split_at_checked(4).is_some_and(|(start, rest)| {
        start.eq_ignore_ascii_case("ses_")
            && !rest.is_empty()
            && rest.bytes().all(|it| it.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, engine: &str, id: &str) {
        assert_eq!(parse(text), Some(line(engine, id)), "{text}");
    }

    fn line(engine: &str, id: &str) -> ResumeLine {
        ResumeLine {
            engine: Some(engine.to_owned()),
            id: id.to_owned(),
        }
    }

    #[test]
    fn every_engine_has_its_line() {
        for (engine, id, line) in [
            ("claude", "abc-1", "`claude --resume abc-1`"),
            ("codex", "abc-1", "`codex resume abc-1`"),
            ("gemini", "abc-1", "`gemini --resume abc-1`"),
            ("opencode", "ses_4f9A", "`opencode --session ses_4f9A`"),
            ("pi", "abc", "`pi --session abc`"),
            ("pi", "/a dir/s.jsonl", "`pi --session \"/a dir/s.jsonl\"`"),
            ("pi", "say \"x\"", r#"`pi --session "say \"x\""`"#),
            ("mock", "abc", "`mock resume abc`"),
        ] {
            assert_eq!(format(engine, id).as_deref(), Some(line));
            check(line, engine, id);
        }
    }

    #[test]
    fn people_type_them_in_many_ways() {
        check("claude --resume abc", "claude", "abc");
        check("  `claude  -r\tabc`  ", "claude", "abc");
        check("Claude -R abc", "claude", "abc");
        check("`claude --resume abc", "claude", "abc");
        check("claude --resume abc`", "claude", "abc");
        check("claude --resume abc\r\n", "claude", "abc");
        check("claude --resume --help", "claude", "--help");
        check("CODEX resume abc", "codex", "abc");
        check("opencode run -s ses_1", "opencode", "ses_1");
        check("opencode run --session ses_1", "opencode", "ses_1");
        check("gemini -r abc", "gemini", "abc");
        check("pi --session a b c", "pi", "a b c");
        check("pi --session 'a b'", "pi", "a b");
    }

    #[test]
    fn linkspan_has_a_line_for_every_engine() {
        check(
            "`linkspan run --engine claude --resume a-1`",
            "claude",
            "a-1",
        );
        check("linkspan run --resume a-1 --engine codex", "codex", "a-1");
        check(
            "Linkspan  run --engine openhands\t--resume a-1",
            "openhands",
            "a-1",
        );
        let model = "`linkspan run --engine responses:main --resume a-1`";
        check(model, "responses:main", "a-1");
        let engine = None;
        let id = "a-1".to_owned();
        let text = "`linkspan run --resume a-1`";
        assert_eq!(parse(text), Some(ResumeLine { engine, id }));
    }

    #[test]
    fn near_resume_lines_are_prose() {
        for line in [
            "",
            "claude --resume=abc",
            "claude --resume abc def",
            "> claude --resume abc",
            "> `claude --resume abc`",
            "claude resume abc",
            "`claude resume abc`",
            "codex exec resume abc",
            "codex --resume abc",
            "opencode --session abc",
            "opencode --session ses_",
            "opencode --session ses_a-b",
            "opencode exec --session ses_1",
            "pi -s abc",
            "pi --session",
            "please resume it",
            "mock resume abc",
            "`vagrant resume box`",
            "`openhands resume abc`",
            "use `claude --resume abc`",
            "claude --resume `abc`",
            "` claude --resume abc`",
            "claude --resume abc `",
            "claude --resume",
            "linkspan --resume abc",
            "linkspan run abc",
            "linkspan run --resume abc def",
            "linkspan run --resume=abc",
            "linkspan run --resume `abc`",
            "linkspan run --engine claude --model m --resume abc",
            "linkspan run --engine acp:/bin/helper --resume abc",
            "linkspan exec --resume abc",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn the_last_line_wins() {
        check(
            "`claude --resume a`\ntext\n`claude --resume b`",
            "claude",
            "b",
        );
        check("`codex resume b`\n`claude --resume a`\nmore", "claude", "a");
    }

    #[test]
    fn an_id_that_would_not_read_back_has_no_line() {
        for (engine, id) in [
            ("claude", ""),
            ("claude", "a b"),
            ("claude", "a`b"),
            ("claude", "a\nb"),
            ("codex", "a b"),
            ("opencode", "abc"),
            ("pi", ""),
            ("pi", "a\nb"),
            ("pi", "'a'"),
            ("openhands", "a"),
            ("two words", "a"),
            ("", "a"),
        ] {
            assert_eq!(format(engine, id), None, "{engine} {id}");
        }
    }

    #[test]
    fn a_prompt_loses_its_resume_lines_and_nothing_else() {
        let claude = Some(line("claude", "b"));
        for (text, rest, found) in [
            ("fix it\n\n`claude --resume b`", "fix it", &claude),
            (
                "`claude --resume a`\none\n  two\nclaude -r b\n",
                "one\n  two",
                &claude,
            ),
            ("`claude --resume b`\n", "continue", &claude),
            ("no line here", "no line here", &None),
            ("", "", &None),
        ] {
            assert_eq!(strip(text), (rest.to_owned(), found.clone()), "{text}");
        }
    }
}
