//! The end of a run: warnings for what was not allowed, and the one `completed`.

use model::{ItemId, Outcome, Raw, RunEnded, Text, Usage};

use super::super::line;
use super::notes::Note;
use super::{Takopi, TakopiProfile};
use crate::resume;
use crate::wire::scanner;
use crate::wire::takopi as wire;

impl Takopi {
    /// Ends the run in the default shape.
    pub(super) fn end_run(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        self.denials(ended, out);
        let is_debug = self.profile == TakopiProfile::Debug;
        let model_usage = if is_debug { model_usage(ended) } else { None };
        self.count_rest(ended, model_usage.is_some());
        let native = self.session.as_ref().map(|it| &*it.native);
        let completed = wire::Completed {
            ok: is_ok(ended.outcome),
            resume_line: native.and_then(|id| resume::format(&self.engine, id)),
            usage: ended.usage.as_ref().map(usage),
            model_usage,
            ..self.completed(answer(ended), error(ended))
        };
        line(out, &completed);
    }

    /// The last event of a run, without its usage.
    pub(super) fn completed<'a>(
        &'a self,
        answer: Text<'a>,
        error: Option<Text<'a>>,
    ) -> wire::Completed<'a> {
        let engine = &*self.engine;
        let session = self.session.as_ref();
        wire::Completed {
            engine,
            ok: error.is_none(),
            answer,
            resume: session.map(|it| wire::Resume {
                engine,
                value: &it.native,
            }),
            resume_line: None,
            error,
            usage: None,
            model_usage: None,
        }
    }

    /// One warning for each denied call, whatever its source.
    fn denials(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        for denial in &ended.denials {
            let detail = wire::DenialDetail {
                tool_name: &denial.tool,
                tool_use_id: denial.item.as_ref().map(ItemId::as_str),
                tool_input: denial.input.as_ref(),
            };
            let title = Text::new(format!("permission denied: {}", denial.tool));
            self.note(out, Note::new(wire::Level::Warning, title, detail));
        }
        // Claude Code reports a denial twice, as a notice and in the `result`: the second has the input.
        for denied in std::mem::take(&mut self.run.denied) {
            let is_written = ended.denials.iter().any(|it| it.item == denied.item);
            if !is_written {
                let detail = wire::NoticeDetail {
                    code: "permission_denied",
                    tool_use_id: denied.item.as_ref().map(ItemId::as_str),
                    data: None,
                };
                self.note(out, Note::new(wire::Level::Warning, denied.text, detail));
            }
        }
    }

    fn count_rest(&mut self, ended: &RunEnded<'_>, has_model_usage: bool) {
        let cost = ended.usage.as_ref().and_then(|it| it.cost_usd);
        if cost.or(ended.session_cost_usd).is_some() {
            self.losses.count("cost");
        }
        if ended.duration_ms.is_some() {
            self.losses.count("duration");
        }
        if ended.stop_reason.is_some() {
            self.losses.count("stop reason");
        }
        if !ended.models.is_empty() && !has_model_usage {
            self.losses.count("usage by model");
        }
    }
}

/// The agent does not call a refusal an error: the model has answered.
pub(super) fn is_ok(outcome: Outcome) -> bool {
    match outcome {
        // Takopi shows the answer of a run that is ok, and a refusal is one.
        Outcome::Completed | Outcome::Refused => true,
        Outcome::Failed | Outcome::Aborted | Outcome::Limit | Outcome::Lost => false,
    }
}

pub(super) fn answer<'a>(ended: &'a RunEnded<'_>) -> Text<'a> {
    ended.answer.as_ref().map_or(Text::EMPTY, Text::by_ref)
}

/// What went wrong; a run that did not complete always has an error.
pub(super) fn error<'a>(ended: &'a RunEnded<'_>) -> Option<Text<'a>> {
    let made_up = match ended.outcome {
        Outcome::Completed => return None,
        Outcome::Failed => "the run failed",
        Outcome::Aborted => "the run was stopped",
        Outcome::Refused => "the model refused",
        Outcome::Limit => "the run reached a limit",
        Outcome::Lost => "the run's end is not known",
    };
    let message = ended.error.as_ref().map(|it| it.message.by_ref());
    let message = message.filter(|it| !it.is_empty());
    Some(message.unwrap_or(Text::new(made_up)))
}

/// The agent's own usage unchanged, or what the model knows of it.
fn usage<'a>(usage: &'a Usage<'_>) -> Raw<'a> {
    if let Some(detail) = &usage.detail {
        return detail.by_ref();
    }
    Raw::of(&wire::Tokens {
        input_tokens: usage.tokens.input,
        cache_creation_input_tokens: usage.tokens.cache_write,
        cache_read_input_tokens: usage.tokens.cache_read,
        output_tokens: usage.tokens.output,
    })
}

fn model_usage<'a>(ended: &'a RunEnded<'_>) -> Option<Raw<'a>> {
    let detail = ended.detail.as_ref()?;
    let frame: wire::ResultFrame<'a> = scanner::from_str(detail.get()).ok()?;
    frame.model_usage.raw()
}
