//! An ask as a conversation on the terminal: what to show, and what the typed lines mean.
//!
//! Without I/O: the caller types, shows and opens the editor. An empty line decides nothing,
//! because return may have been pressed for another reason.

use formats::{display_safe, visible};
use model::AskKind;
use runner::{Answer, PendingAsk};
use serde_json::{Map, Value};

/// What follows from a typed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// Shown before the next line is typed.
    Show(String),
    /// To be changed in an editor; see [`Question::edited`].
    Edit(String),
    Settle(Answer),
}

#[derive(Debug)]
pub(super) struct Question {
    asked: PendingAsk,
    can_change: bool,
    stage: QuestionStep,
    input: Map<String, Value>,
    answers: Map<String, Value>,
}

#[derive(Debug, PartialEq, Eq)]
enum QuestionStep {
    Permission,
    Reason,
    Plan,
    /// The questions that are left, the next one last.
    Choices(Vec<AnswerChoice>),
}

#[derive(Debug, PartialEq, Eq)]
struct AnswerChoice {
    question: String,
    options: Vec<(String, String)>,
    is_many: bool,
}

impl Question {
    /// `can_change`: the agent runs what it is given instead of what it asked for.
    pub(super) fn new(asked: PendingAsk, can_change: bool) -> Self {
        let raw = asked.ask.input.as_ref().map(|it| it.get().to_owned());
        let input: Map<String, Value> = raw
            .and_then(|it| serde_json::from_str(&it).ok())
            .unwrap_or_default();
        let choices = choices(&input);
        let stage = match asked.ask.kind {
            AskKind::Question if !choices.is_empty() => QuestionStep::Choices(choices),
            AskKind::Plan => QuestionStep::Plan,
            // A question without choices can still be allowed or denied.
            AskKind::Permission | AskKind::Question => QuestionStep::Permission,
        };
        Self {
            asked,
            can_change,
            stage,
            input,
            answers: Map::new(),
        }
    }

    pub(super) fn id(&self) -> &str {
        self.asked.ask.id.as_str()
    }

    /// The question itself, for a terminal that does not show the transcript.
    pub(super) fn heading(&self) -> String {
        let ask = &self.asked.ask;
        let title = visible(&ask.title.to_str()).into_owned();
        let tool = visible(&ask.tool);
        // Some agents begin the title with the tool.
        let title = match title.starts_with(&*tool) {
            true => title,
            false => format!("{tool}  {title}"),
        };
        let words = match &ask.description {
            Some(description) => format!("? {title}\n  {description}\n"),
            None => format!("? {title}\n"),
        };
        display_safe(&words).into_owned()
    }

    /// What can be typed.
    pub(super) fn prompt(&self) -> String {
        match &self.stage {
            QuestionStep::Permission => {
                let always = self.asked.ask.suggestions.is_some();
                let always = if always {
                    "  [a] allow from now on"
                } else {
                    ""
                };
                let edit = if self.can_change { "  [e] edit" } else { "" };
                let view = if self.input.is_empty() {
                    ""
                } else {
                    "  [v] view all of it"
                };
                format!("  [y] allow once{always}  [n] deny{edit}{view}\n  › ")
            }
            QuestionStep::Reason => "  why not? (return for no reason)\n  › ".to_owned(),
            QuestionStep::Plan => "  [y] go ahead  [n] keep planning\n  › ".to_owned(),
            QuestionStep::Choices(left) => {
                left.last().map(AnswerChoice::prompt).unwrap_or_default()
            }
        }
    }

    pub(super) fn typed(&mut self, line: &str) -> Reply {
        let line = line.trim();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match &mut self.stage {
            QuestionStep::Permission => match &*word.to_lowercase() {
                "y" | "yes" => Reply::Settle(Answer::Allow { input: None }),
                "a" | "always" if self.asked.ask.suggestions.is_some() => {
                    Reply::Settle(Answer::AllowAlways { input: None })
                }
                "n" | "no" if rest.is_empty() => self.ask_why(),
                "n" | "no" => deny(rest),
                "e" | "edit" if self.can_change => Reply::Edit(self.shown_input()),
                "v" | "view" => Reply::Show(format!("{}{}", self.whole_input(), self.prompt())),
                _ => Reply::Show(self.prompt()),
            },
            QuestionStep::Plan => match &*word.to_lowercase() {
                "y" | "yes" => Reply::Settle(Answer::Allow { input: None }),
                "n" | "no" if rest.is_empty() => self.ask_why(),
                "n" | "no" => deny(rest),
                _ => Reply::Show(self.prompt()),
            },
            QuestionStep::Reason if line.is_empty() => deny("the user said no"),
            QuestionStep::Reason => deny(line),
            QuestionStep::Choices(left) => {
                let Some(answer) = left.last().and_then(|it| it.answer(line)) else {
                    return Reply::Show(self.prompt());
                };
                if let Some(choice) = left.pop() {
                    self.answers.insert(choice.question, Value::String(answer));
                }
                if left.is_empty() {
                    self.answered()
                } else {
                    Reply::Show(self.prompt())
                }
            }
        }
    }

    /// The edited input.
    pub(super) fn edited(&self, text: &str) -> Reply {
        match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(input) => Reply::Settle(Answer::Allow {
                input: Some(Value::Object(input).to_string()),
            }),
            Err(err) => Reply::Show(format!("  not a JSON object: {err}\n{}", self.prompt())),
        }
    }

    fn ask_why(&mut self) -> Reply {
        self.stage = QuestionStep::Reason;
        Reply::Show(self.prompt())
    }

    fn shown_input(&self) -> String {
        let mut text = format!("{:#}", Value::Object(self.input.clone()));
        text.push('\n');
        text
    }

    /// Everything that would run: texts with their lines, everything else as JSON.
    fn whole_input(&self) -> String {
        let mut shown = String::new();
        for (key, value) in &self.input {
            shown.push_str(&format!("  {}:\n", visible(key)));
            match value {
                Value::String(text) => {
                    for line in text.split('\n') {
                        shown.push_str(&format!("    {}\n", visible(line)));
                    }
                }
                value => {
                    for line in format!("{value:#}").lines() {
                        shown.push_str(&format!("    {}\n", display_safe(line)));
                    }
                }
            }
        }
        shown
    }

    /// The answers go back inside the input they were asked with.
    fn answered(&mut self) -> Reply {
        let mut input = std::mem::take(&mut self.input);
        let answers = std::mem::take(&mut self.answers);
        input.insert("answers".to_owned(), Value::Object(answers));
        Reply::Settle(Answer::Allow {
            input: Some(Value::Object(input).to_string()),
        })
    }
}

impl AnswerChoice {
    fn prompt(&self) -> String {
        let mut text = format!("  {}\n", self.question);
        for (n, (label, description)) in self.options.iter().enumerate() {
            text.push_str(&format!("  [{}] {label}", n + 1));
            if !description.is_empty() {
                text.push_str(&format!("  {description}"));
            }
            text.push('\n');
        }
        text.push_str(match self.is_many {
            true => "  numbers, or your own words\n  › ",
            false => "  a number, or your own words\n  › ",
        });
        display_safe(&text).into_owned()
    }

    /// Numbers choose; other words are the answer themselves.
    fn answer(&self, line: &str) -> Option<String> {
        if line.is_empty() {
            return None;
        }
        let numbers: Option<Vec<usize>> = line
            .split([' ', ','])
            .filter(|it| !it.is_empty())
            .map(|it| it.parse().ok())
            .collect();
        // An answer such as `3 files` is words, and not the third choice.
        let Some(numbers) = numbers else {
            return Some(line.to_owned());
        };
        if numbers.len() > 1 && !self.is_many {
            return None;
        }
        let labels: Option<Vec<&str>> = numbers
            .into_iter()
            .map(|n| Some(&*self.options.get(n.checked_sub(1)?)?.0))
            .collect();
        labels.map(|it| it.join(", "))
    }
}

fn deny(message: &str) -> Reply {
    Reply::Settle(Answer::Deny {
        message: message.to_owned(),
    })
}

/// The questions of an input, the first one last.
fn choices(input: &Map<String, Value>) -> Vec<AnswerChoice> {
    let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
    let questions = input.get("questions").and_then(Value::as_array);
    let choices = questions
        .into_iter()
        .flatten()
        .rev()
        .map(|it| AnswerChoice {
            question: text(it, "question"),
            options: it["options"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|it| (text(it, "label"), text(it, "description")))
                .collect(),
            is_many: it["multiSelect"].as_bool().unwrap_or_default(),
        });
    choices.collect()
}

#[cfg(test)]
mod tests {
    use model::{Ask, AskId, Raw, Text, ToolKind};

    use super::*;

    fn question(kind: AskKind, input: &str, has_suggestions: bool) -> Question {
        let ask = Ask {
            id: AskId::new("a"),
            kind,
            item: None,
            tool: "Bash".into(),
            title: Text::new("ls\x1b[2J"),
            description: Some(Text::new("List")),
            input: Some(Raw::parse(input.to_owned())),
            suggestions: has_suggestions.then(|| Raw::parse("[]".to_owned())),
            deadline: None,
        };
        let kind = ToolKind::Shell;
        let asked = PendingAsk {
            ask,
            kind,
            paths: Vec::new(),
            cwd: None,
        };
        Question::new(asked, true)
    }

    fn settled(answer: Answer) -> Reply {
        Reply::Settle(answer)
    }

    #[test]
    fn a_permission_is_given_once_always_or_not_at_all() {
        let new = || question(AskKind::Permission, r#"{"command":"ls"}"#, true);
        let allow = || Answer::Allow { input: None };
        assert_eq!(new().typed("y"), settled(allow()));
        assert_eq!(new().typed(" YES "), settled(allow()));
        let always = Answer::AllowAlways { input: None };
        assert_eq!(new().typed("a"), settled(always));
        assert_eq!(new().typed("no use rg"), deny("use rg"));
        let mut asked = new();
        assert_eq!(
            asked.typed("n"),
            Reply::Show("  why not? (return for no reason)\n  › ".to_owned())
        );
        assert_eq!(asked.typed(""), deny("the user said no"));
    }

    #[test]
    fn an_empty_line_decides_nothing() {
        let mut asked = question(AskKind::Permission, "{}", false);
        let prompt = "  [y] allow once  [n] deny  [e] edit\n  › ".to_owned();
        assert_eq!(asked.typed(""), Reply::Show(prompt));
    }

    #[test]
    fn the_whole_of_what_would_run_is_one_key_away() {
        let input = r#"{"command":"ls\nrm -rf \u202e/ ","timeout":5,"flags":["a"]}"#;
        let mut asked = question(AskKind::Permission, input, false);
        let shown = "  command:\n    ls\n    rm -rf \\u{202e}/\u{2420}\n  flags:\n    [\n      \"a\"\n    ]\n  timeout:\n    5\n";
        let prompt = "  [y] allow once  [n] deny  [e] edit  [v] view all of it\n  › ";
        assert_eq!(asked.typed("v"), Reply::Show(format!("{shown}{prompt}")));
    }

    #[test]
    fn an_edited_input_must_be_an_object() {
        let mut asked = question(AskKind::Permission, r#"{"command":"ls"}"#, false);
        let text = "{\n  \"command\": \"ls\"\n}\n".to_owned();
        assert_eq!(asked.typed("e"), Reply::Edit(text));
        assert_eq!(
            asked.edited("[]"),
            Reply::Show(
                "  not a JSON object: invalid type: sequence, expected a map at line 1 column 0\n  \
                 [y] allow once  [n] deny  [e] edit  [v] view all of it\n  › "
                    .to_owned()
            )
        );
        let input = Some(r#"{"command":"pwd"}"#.to_owned());
        assert_eq!(
            asked.edited("{ \"command\": \"pwd\" }"),
            settled(Answer::Allow { input })
        );
    }

    #[test]
    fn questions_are_asked_one_by_one() {
        let input = r#"{"questions":[
            {"question":"Which color?","options":[{"label":"Red","description":"r"},{"label":"Blue"}]},
            {"question":"Sizes?","multiSelect":true,"options":[{"label":"S"},{"label":"M"}]}]}"#;
        let mut asked = question(AskKind::Question, input, false);
        let first = "  Which color?\n  [1] Red  r\n  [2] Blue\n  a number, or your own words\n  › ";
        assert_eq!(asked.prompt(), first);
        assert_eq!(asked.typed("3"), Reply::Show(first.to_owned()));
        assert_eq!(asked.typed("1 2"), Reply::Show(first.to_owned()));
        let second = "  Sizes?\n  [1] S\n  [2] M\n  numbers, or your own words\n  › ";
        assert_eq!(asked.typed("2"), Reply::Show(second.to_owned()));
        let Reply::Settle(Answer::Allow { input: Some(input) }) = asked.typed("1, 2") else {
            panic!("both questions are answered");
        };
        let input: Value = serde_json::from_str(&input).unwrap();
        assert_eq!(
            input["answers"],
            serde_json::json!({"Which color?": "Blue", "Sizes?": "S, M"})
        );
        assert_eq!(input["questions"][0]["question"], "Which color?");
    }

    #[test]
    fn a_question_cannot_control_the_terminal() {
        let asked = question(AskKind::Permission, "{}", false);
        assert_eq!(asked.heading(), "? Bash  ls\u{241b}[2J\n  List\n");
        let mut asked = asked;
        asked.asked.ask.title = Text::new("Bash ls");
        assert_eq!(asked.heading(), "? Bash ls\n  List\n");
    }
}
