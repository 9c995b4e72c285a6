//! A call as a card: what it was, what it was given, what was decided, what came back.

use std::borrow::Cow;

use model::{Losses, Raw, Status, Text, Tool, ToolKind};

use super::agents::text_hash;
use super::{Renderer, truncated};
use crate::wire::lenient::{Any, Map};
use crate::wire::scanner;
use crate::writers::content::{ResultPart, blocks};
use crate::writers::labels::{cut, label_and_target, size, unwrapped};
use crate::writers::transcript::Picture;

/// Characters of a headline; the whole command or path stands inside the card.
const MAX_ABOUT: usize = 160;

/// The inputs that a diff is made of.
const CHANGES: [&str; 9] = [
    "old_str",
    "new_str",
    "old_string",
    "new_string",
    "oldString",
    "newString",
    "file_text",
    "edits",
    "changes",
];

#[derive(Debug)]
pub(crate) struct ToolCard<'a> {
    pub(crate) kind: ToolKind,
    pub(crate) name: String,
    /// What it is about, on one line.
    pub(crate) about: Option<String>,
    pub(crate) ending: CardOutcome,
    pub(crate) pieces: Vec<CardPart<'a>>,
}

/// How a call ended, as far as that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CardOutcome {
    Ok,
    /// The call succeeded, but the command failed.
    Exit(i32),
    /// Only a part is shown so far.
    Open,
    Background,
    Failed(Option<i32>),
    Denied,
    Cancelled,
    Lost,
}

/// What stands inside a card, in this order.
#[derive(Debug)]
pub(crate) enum CardPart<'a> {
    Command(Cow<'a, str>),
    Field {
        name: Cow<'a, str>,
        value: Cow<'a, str>,
    },
    Diff {
        path: Cow<'a, str>,
        old: Option<Cow<'a, str>>,
        new: Cow<'a, str>,
    },
    Decision(String),
    /// What a sub-agent did, already written by the same markup.
    Inside(Vec<u8>),
    Output(Cow<'a, str>),
    /// What a sub-agent's report looked like to the agent that started it.
    HandedBack(Cow<'a, str>),
    /// What a sub-agent reported, in Markdown.
    Report(Cow<'a, str>),
    Picture(Picture<'a>),
    /// The text before this was longer; its whole size.
    Cut(String),
    Nothing,
}

/// The last words of an agent, which need no repeating.
#[derive(Debug, Default)]
pub(super) struct LastText {
    pub(super) hash: Option<u64>,
    /// The report of the agent is shown, so that other results are what was handed back.
    pub(super) has_report: bool,
}

impl CardOutcome {
    pub(crate) fn of(status: Status, exit_code: Option<i32>) -> Self {
        match status {
            Status::Ok => match exit_code.filter(|it| *it != 0) {
                Some(code) => Self::Exit(code),
                None => Self::Ok,
            },
            Status::Error => Self::Failed(exit_code.filter(|it| *it != 0)),
            Status::Denied => Self::Denied,
            Status::Cancelled => Self::Cancelled,
            Status::Lost => Self::Lost,
        }
    }

    /// A short label, unless the call simply succeeded.
    pub(crate) fn label(self) -> Option<String> {
        Some(match self {
            Self::Ok => return None,
            Self::Exit(code) | Self::Failed(Some(code)) => format!("exit {code}"),
            Self::Open => "so far".to_owned(),
            Self::Background => "in the background".to_owned(),
            Self::Failed(None) => "failed".to_owned(),
            Self::Denied => "denied".to_owned(),
            Self::Cancelled => "cancelled".to_owned(),
            Self::Lost => "end not seen".to_owned(),
        })
    }
}

impl<'a> ToolCard<'a> {
    pub(super) fn of_call(tool: &Tool<'_>, status: Status, goes_on: bool) -> Self {
        let (name, about) = label_and_target(tool);
        let about = about.as_deref().map(one_line);
        Self {
            kind: tool.class.kind,
            name,
            about: about.filter(|it| !it.is_empty()),
            ending: match CardOutcome::of(status, tool.class.exit_code) {
                CardOutcome::Ok if goes_on => CardOutcome::Background,
                ending => ending,
            },
            pieces: Vec::new(),
        }
    }

    /// The input of the call, without what the headline, command, diff or task already shows.
    pub(super) fn input<M: Renderer>(
        &mut self,
        tool: &'a Tool<'_>,
        task: Option<u64>,
        losses: &mut Losses,
    ) {
        // The headline has a name for people; this is the one that the agent uses.
        if self.name != *tool.name {
            let name = Cow::Borrowed("tool");
            let value = Cow::Borrowed(&*tool.name);
            self.pieces.push(CardPart::Field { name, value });
        }
        let class = &tool.class;
        let command = class.command.as_ref().map(Text::to_str);
        if let Some(command) = &command {
            let text = self.cut::<M>(command.clone(), losses, "cut tool input");
            self.insert(CardPart::Command(text.0), text.1);
        }
        if let Some(input) = &tool.input {
            let about = self.about.clone();
            let is_shown = |name: &str, value: &str| {
                let in_diff = class.diffs.iter().any(|it| {
                    it.new.to_str() == value
                        || it.path.to_str() == value
                        || it.old.as_ref().is_some_and(|old| old.to_str() == value)
                });
                let in_headline = about.as_deref() == Some(value);
                let is_change = !class.diffs.is_empty() && CHANGES.contains(&name);
                in_diff
                    || is_change
                    || in_headline
                    || command.as_deref() == Some(value)
                    || task == Some(text_hash(value))
            };
            self.fields::<M>(input, is_shown, losses);
        }
        for diff in &class.diffs {
            let (old, _) = match &diff.old {
                Some(old) => self.cut::<M>(old.to_str(), losses, "cut diff"),
                None => (Cow::Borrowed(""), None),
            };
            let (new, note) = self.cut::<M>(diff.new.to_str(), losses, "cut diff");
            let piece = CardPart::Diff {
                path: diff.path.to_str(),
                old: diff.old.as_ref().map(|_| old),
                new,
            };
            self.insert(piece, note);
        }
    }

    fn fields<M: Renderer>(
        &mut self,
        input: &'a Raw<'_>,
        is_shown: impl Fn(&str, &str) -> bool,
        losses: &mut Losses,
    ) {
        let fields = match scanner::from_str::<Map<'a, Any<'a>>>(input.get()) {
            Ok(fields) if input.get().starts_with('{') => fields.0,
            Ok(_) | Err(_) => {
                let text = match input.is_null() {
                    true => return,
                    false => Text::from(input.by_ref()).to_string(),
                };
                let (value, note) = self.cut::<M>(text.into(), losses, "cut tool input");
                let name = Cow::Borrowed("input");
                return self.insert(CardPart::Field { name, value }, note);
            }
        };
        for (name, value) in fields {
            let Some(raw) = value.raw() else { continue };
            let value = Text::from(raw).to_string();
            if is_shown(&name, &value) {
                continue;
            }
            let (value, note) = self.cut::<M>(value.into(), losses, "cut tool input");
            self.insert(CardPart::Field { name, value }, note);
        }
    }

    /// What came back, unless it was shown already.
    pub(super) fn result<M: Renderer>(
        &mut self,
        tool: &'a Tool<'_>,
        status: Status,
        last: &mut LastText,
        printed: &str,
        losses: &mut Losses,
    ) {
        let n_before = self.pieces.len();
        let Some(result) = &tool.result else {
            if !printed.is_empty() {
                self.output::<M>(printed.to_owned().into(), last, losses);
            }
            return;
        };
        for block in blocks(&result.content) {
            match block {
                ResultPart::Text(text) => {
                    let text = text.to_str();
                    let text = match status == Status::Ok {
                        true => &*text,
                        false => unwrapped(text.trim()),
                    };
                    // Claude Code returns the last text of a sub-agent as the result of its call.
                    if last.hash == Some(text_hash(text)) {
                        continue;
                    }
                    let is_report = tool.class.kind == ToolKind::Task && status == Status::Ok;
                    if is_report && !last.has_report {
                        self.report::<M>(text, last, losses);
                    } else {
                        self.output::<M>(text.to_owned().into(), last, losses);
                    }
                }
                ResultPart::Image { media_type, data } => {
                    let data = Cow::Owned(data.to_str().into_owned());
                    let picture = Picture::Data { media_type, data };
                    self.pieces.push(CardPart::Picture(picture));
                }
                ResultPart::ImageUrl(url) => {
                    let url = Cow::Owned(url.to_str().into_owned());
                    self.pieces.push(CardPart::Picture(Picture::Url(url)));
                }
                ResultPart::Other(raw) => {
                    self.output::<M>(raw.get().to_owned().into(), last, losses)
                }
            }
        }
        let is_diff = |it: &CardPart<'_>| matches!(it, CardPart::Diff { .. });
        // A report or a diff is what came back; other calls say that nothing did.
        let says_nothing = last.hash.is_none() && !self.pieces.iter().any(is_diff);
        if self.pieces.len() == n_before && says_nothing {
            self.pieces.push(CardPart::Nothing);
        }
    }

    /// What an agent reported, unless those were its last words.
    pub(super) fn report<M: Renderer>(
        &mut self,
        text: &str,
        last: &mut LastText,
        losses: &mut Losses,
    ) {
        let before = last.hash.replace(text_hash(text));
        last.has_report = true;
        if text.trim().is_empty() || before == Some(text_hash(text)) {
            return;
        }
        let (text, note) = self.cut::<M>(text.to_owned().into(), losses, "cut tool output");
        self.insert(CardPart::Report(text), note);
    }

    fn output<M: Renderer>(&mut self, text: Cow<'a, str>, last: &LastText, losses: &mut Losses) {
        if text.trim().is_empty() {
            return;
        }
        let (text, note) = self.cut::<M>(text, losses, "cut tool output");
        let piece = if last.has_report {
            CardPart::HandedBack(text)
        } else {
            CardPart::Output(text)
        };
        self.insert(piece, note);
    }

    fn insert(&mut self, piece: CardPart<'a>, note: Option<String>) {
        self.pieces.push(piece);
        self.pieces.extend(note.map(CardPart::Cut));
    }

    /// The beginning of a long text, and a note of its length.
    fn cut<M: Renderer>(
        &self,
        text: Cow<'a, str>,
        losses: &mut Losses,
        loss: &'static str,
    ) -> (Cow<'a, str>, Option<String>) {
        if text.len() <= M::MAX_SHOWN {
            return (text, None);
        }
        losses.count(loss);
        let note = format!("cut here, {} in all", size(text.len()));
        (Cow::Owned(truncated::<M>(&text).to_owned()), Some(note))
    }
}

/// The first words of a text that may have many lines.
fn one_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default().trim();
    let first = cut(first, MAX_ABOUT);
    match lines.next() {
        Some(_) if !first.ends_with('…') => format!("{first} …"),
        Some(_) | None => first.into_owned(),
    }
}
