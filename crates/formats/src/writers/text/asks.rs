//! Questions of the agent, and how they were settled.
//!
//! Somebody who watches sees the question when it is asked; a file gets it with its answer.

use model::{Ask, AskId, AskKind, AskSettled, Decision, ItemId, Raw};

use super::calls;
use super::page::{DIM, GREEN, Indent, Kind, Page, RED, Safe, YELLOW};
use crate::wire::lenient::{Any, Map};

/// A question that waits.
#[derive(Clone, Debug)]
pub(super) struct OpenAsk {
    pub(super) id: AskId<'static>,
    /// The call it is about.
    pub(super) call: Option<ItemId<'static>>,
    kind: AskKind,
    question: String,
    input: Option<Raw<'static>>,
}

impl OpenAsk {
    pub(super) fn new(ask: &Ask<'_>) -> Self {
        Self {
            id: ask.id.clone().into_owned(),
            call: ask.item.clone().map(ItemId::into_owned),
            kind: ask.kind,
            question: question(ask),
            input: ask.input.clone().map(Raw::into_owned),
        }
    }

    /// Asks.
    pub(super) fn write(&self, path: &[ItemId<'_>], page: &mut Page, out: &mut Vec<u8>) {
        page.begin(self.block(), path, out);
        let safe = Safe::new(&self.question);
        for (n, line) in safe.lines().take(calls::MAX_LINES).enumerate() {
            if n == 0 {
                page.start(Indent(""), out);
                page.put(YELLOW, &Safe::new("? "), out);
                page.put(YELLOW, &line, out);
                page.end_line(out);
            } else {
                page.line(Indent("  "), YELLOW, &line, out);
            }
        }
    }

    /// Answers, under the question if that is what was written last.
    pub(super) fn settle(
        &self,
        settled: &AskSettled<'_>,
        path: &[ItemId<'_>],
        page: &mut Page,
        out: &mut Vec<u8>,
    ) {
        if !page.is_last(&self.block()) {
            self.write(path, page, out);
        }
        page.resume(self.block(), path);
        let style = match settled.decision {
            Decision::Allowed | Decision::AllowedAlways => GREEN,
            Decision::Denied => RED,
            Decision::Withdrawn | Decision::Lost => YELLOW,
        };
        page.start(Indent("  "), out);
        page.put(DIM, &Safe::new("→ "), out);
        page.put(style, &Safe::new(&self.decision(settled)), out);
        page.end_line(out);
    }

    fn block(&self) -> Kind {
        Kind::Ask(self.id.clone(), self.call.clone())
    }

    /// What was decided, in words.
    pub(super) fn decision(&self, settled: &AskSettled<'_>) -> String {
        let mut words = match settled.decision {
            Decision::Allowed => self.allowed(settled),
            Decision::AllowedAlways => "always allowed".to_owned(),
            Decision::Denied => "denied".to_owned(),
            Decision::Withdrawn => "withdrawn".to_owned(),
            Decision::Lost => "nobody saw an answer".to_owned(),
        };
        if let Some(message) = settled.message.as_ref().filter(|it| !it.is_blank()) {
            words += &format!(": {}", message.to_str().replace('\n', " "));
        }
        words
    }

    fn allowed(&self, settled: &AskSettled<'_>) -> String {
        let answer = settled.input.as_ref();
        match self.kind {
            AskKind::Question => answer
                .and_then(answers)
                .unwrap_or_else(|| "answered".to_owned()),
            AskKind::Plan => "approved".to_owned(),
            AskKind::Permission => match answer {
                Some(input) if self.input.as_ref() != Some(input) => {
                    format!("allowed, changed to {}", calls::compact(input))
                }
                Some(_) | None => "allowed".to_owned(),
            },
        }
    }
}

fn question(ask: &Ask<'_>) -> String {
    let title = ask.title.to_str();
    match ask.kind {
        AskKind::Permission if title.starts_with(&*ask.tool) => format!("allow {title}"),
        AskKind::Permission => format!("allow {}  {title}", ask.tool),
        AskKind::Question => title.into_owned(),
        AskKind::Plan => "approve the plan".to_owned(),
    }
}

object! {
    Answers {
        answers: Map<'a, Any<'a>> = "answers",
    }
}

/// What was answered, if the agent keeps the answers by question.
fn answers(input: &Raw<'_>) -> Option<String> {
    let input: Answers<'_> = serde_json::from_str(input.get()).ok()?;
    let answers = input.answers.0.into_iter();
    let answers: Vec<String> = answers
        .filter_map(|(_, answer)| Some(model::Text::from(answer.raw()?).to_string()))
        .collect();
    (!answers.is_empty()).then(|| answers.join(", "))
}
