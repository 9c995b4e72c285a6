//! Questions of the agent in words, and how they were settled.

use model::{Ask, AskId, AskKind, AskSettled, Decision, ItemId, Raw};

use super::labels::compact;
use crate::wire::lenient::{Any, Map};
use crate::wire::scanner;

/// A question that waits.
#[derive(Clone, Debug)]
pub(crate) struct OpenAsk {
    pub(crate) id: AskId<'static>,
    /// The call it is about.
    pub(crate) call: Option<ItemId<'static>>,
    pub(crate) kind: AskKind,
    pub(crate) question: String,
    input: Option<Raw<'static>>,
}

impl OpenAsk {
    pub(crate) fn new(ask: &Ask<'_>) -> Self {
        Self {
            id: ask.id.clone().into_owned(),
            call: ask.item.clone().map(ItemId::into_owned),
            kind: ask.kind,
            question: question(ask),
            input: ask.input.clone().map(Raw::into_owned),
        }
    }

    /// What was decided, in words.
    pub(crate) fn decision(&self, settled: &AskSettled<'_>) -> String {
        let mut words = match settled.decision {
            Decision::Allowed => self.allowed(settled),
            Decision::AllowedAlways | Decision::Denied | Decision::Withdrawn | Decision::Lost => {
                decision_label(self.kind, settled.decision).to_owned()
            }
        };
        if let Some(message) = settled.message.as_ref().filter(|it| !it.is_blank()) {
            words += &format!(": {}", message.to_str().replace('\n', " "));
        }
        words
    }

    fn allowed(&self, settled: &AskSettled<'_>) -> String {
        let answer = settled.input.as_ref();
        let label = decision_label(self.kind, settled.decision);
        match (self.kind, answer) {
            (AskKind::Question, Some(input)) => answers(input).unwrap_or_else(|| label.to_owned()),
            (AskKind::Permission, Some(input)) if self.input.as_ref() != Some(input) => {
                format!("{label}, changed to {}", compact(input))
            }
            (AskKind::Permission | AskKind::Question | AskKind::Plan, _) => label.to_owned(),
        }
    }
}

/// How an ask was settled, as a short label.
pub(crate) fn decision_label(kind: AskKind, decision: Decision) -> &'static str {
    match (kind, decision) {
        (AskKind::Permission, Decision::Allowed) => "allowed",
        (AskKind::Question, Decision::Allowed) => "answered",
        (AskKind::Plan, Decision::Allowed) => "approved",
        (_, Decision::AllowedAlways) => "always allowed",
        (AskKind::Question, Decision::Denied) => "skipped",
        (AskKind::Permission | AskKind::Plan, Decision::Denied) => "denied",
        (_, Decision::Withdrawn) => "withdrawn",
        (_, Decision::Lost) => "never answered",
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
    let input: Answers<'_> = scanner::from_str(input.get()).ok()?;
    let answers = input.answers.0.into_iter();
    let answers: Vec<String> = answers
        .filter_map(|(_, answer)| Some(model::Text::from(answer.raw()?).to_string()))
        .collect();
    (!answers.is_empty()).then(|| answers.join(", "))
}
