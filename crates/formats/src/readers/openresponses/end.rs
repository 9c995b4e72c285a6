//! How a response ends: by a terminal event, by an error, or because nothing more came.

use std::borrow::Cow;

use model::{
    Basis, End, Level, Notice, Outcome, Raw, RunEnded, RunError, Scope, Text, Tokens, Usage,
};

use super::{FrameContext, OpenResponses, seconds};
use crate::readers::machine::MessageReader as _;
use crate::readers::missing_end::MissingEnd;
use crate::wire::lenient::{Any, Str};
use crate::wire::openresponses::{self as wire, Response};
use crate::wire::scanner;

impl OpenResponses {
    /// A terminal event; `kind` is its type, or the status of a response that was not streamed.
    pub(super) fn terminal<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        kind: &str,
        mut response: Response<'c>,
    ) {
        // The items have shown the output already: repeated in `detail` it would double every run.
        let output = std::mem::take(&mut response.output);
        let detail = response.facts();
        let id = response.id();
        let mut details: wire::Details<'c> = response.fact("incomplete_details");
        let reported: Any<'c> = response.fact("error");
        let model = response.fact::<Str<'c>>("model").take();
        let usage = usage(response.fact("usage"), model);
        let completed_at = seconds(response.fact("completed_at"));
        if !self.lifecycle.has_run() {
            // A repetition of the end changes nothing of the run.
            if self.has_ended(&response) {
                return self.lifecycle.after_end(cx);
            }
            self.begin(cx, response);
        }
        self.resume(cx);
        cx.native = id.clone();
        cx.extra.clear();
        for (index, item) in output.0.iter().enumerate() {
            // Whatever the deltas and items left out is in the finished response: nothing of it may
            // be lost.
            self.missed_item(cx, index as u64, *item);
        }
        cx.at = completed_at.or(cx.at);
        let kind = kind.strip_prefix("response.").unwrap_or(kind);
        let error = self.error.take();
        let (outcome, failure) = match kind {
            "completed" => (self.completed(), None),
            "incomplete" => (unfinished(details.reason.as_deref()), None),
            "cancelled" => (Outcome::Aborted, Some(failure(None, "aborted", "aborted"))),
            _ => {
                let reported = reported.raw().or(error.as_ref().map(Raw::by_ref));
                let error = failure(reported.as_ref(), "failed", "the response failed");
                (Outcome::Failed, Some(error))
            }
        };
        if let Some(raw) = error {
            // It has the same message, with a type and a parameter.
            if outcome == Outcome::Failed {
                cx.extra.push((Cow::Borrowed("error_event"), raw));
            } else {
                self.error_notice(cx, &raw);
            }
        }
        // A response that failed or was cancelled leaves its items unfinished: the end of the run
        // closes them.
        if failure.is_none() {
            cx.without_extra(|cx| self.close_output(cx));
        }
        let ended = RunEnded {
            usage,
            stop_reason: details.reason.take(),
            detail,
            ..RunEnded::new(outcome, failure)
        };
        self.end_run(cx, ended);
        // After `end_run`, which forgets the response: a repetition of it has to be known.
        self.ended = id.map(Cow::into_owned);
    }

    fn completed(&self) -> Outcome {
        if self.has_refused && !self.has_said {
            Outcome::Refused
        } else {
            Outcome::Completed
        }
    }

    /// An `error` event: held, because `response.failed` is to follow.
    pub(super) fn error_event(&mut self, cx: &mut FrameContext<'_>) {
        cx.extra.clear();
        self.resume(cx);
        self.error = Some(cx.raw().into_owned());
    }

    fn error_notice(&mut self, cx: &mut FrameContext<'_>, raw: &Raw<'_>) {
        let error = failure(Some(raw), "error", "the server reported an error");
        let notice = Notice {
            detail: Some(raw.by_ref()),
            ..Notice::new(Level::Error, error.code, error.message)
        };
        self.lifecycle.notice(cx, notice);
    }

    /// The stream stops, or says `[DONE]`, before the response has ended.
    pub(super) fn judge_cut(&mut self, end: &End, missing: &mut MissingEnd) {
        let error = self.error.take();
        if missing.is_aborted() {
            return;
        }
        if let Some(raw) = error {
            // `response.failed` was to repeat it, and did not come.
            let error = failure(Some(&raw), "error", "the server reported an error");
            missing.fail_with(error);
            missing.ended.detail = Some(raw);
            missing.why = None;
        } else if end.exit.is_none() {
            // Clients of model endpoints know this code, and try again at it.
            let text = "the stream ended before the response did";
            missing.ended.error = Some(failure(None, "upstream_truncated", text));
        }
    }

    pub(super) fn forget(&mut self) {
        self.output = super::OutputItems::default();
        self.response = None;
        self.error = None;
        self.has_refused = false;
        self.has_said = false;
    }
}

/// What an `incomplete` response stopped at.
fn unfinished(reason: Option<&str>) -> Outcome {
    match reason {
        Some("content_filter") => Outcome::Refused,
        Some(_) | None => Outcome::Limit,
    }
}

/// The error of a response, of an `error` event, or of an HTTP answer.
fn failure<'a>(error: Option<&Raw<'_>>, code: &'static str, text: &'static str) -> RunError<'a> {
    let outer: ErrorEnvelope<'_> = error
        .and_then(|it| scanner::from_str(it.get()).ok())
        .unwrap_or_default();
    let flat = error.and_then(|it| scanner::from_str(it.get()).ok());
    let mut error: wire::Error<'_> = outer.error.parse().or(flat).unwrap_or_default();
    if error.r#type.as_deref() == Some("error") {
        // In a bare `error` event that field is the event's own type, not the kind of the error.
        error.r#type.take();
    }
    let code = (error.code.take().or(error.r#type.take()))
        .map_or(Cow::Borrowed(code), |it| Cow::Owned(it.into_owned()));
    let message = error.message.filled_text();
    RunError::new(code, message.map_or(Text::new(text), Text::into_owned))
}

object! {
    ErrorEnvelope {
        error: Any<'a> = "error",
    }
}

fn usage<'a>(reported: Any<'a>, model: Option<Cow<'a, str>>) -> Option<Usage<'a>> {
    let usage: wire::Usage<'a> = reported.parse()?;
    let cache_read = usage.input_tokens_details.cached_tokens.count();
    let cache_write = usage.input_tokens_details.cache_write_tokens.count();
    let input = usage.input_tokens.count();
    let tokens = Tokens {
        // The counts of the cache are parts of the input.
        input: input.saturating_sub(cache_read).saturating_sub(cache_write),
        cache_read,
        cache_write,
        output: usage.output_tokens.as_u64(),
        reasoning: usage.output_tokens_details.reasoning_tokens.as_u64(),
    };
    Some(Usage {
        model,
        detail: reported.raw(),
        ..Usage::new(Scope::Run, Basis::Delta, tokens)
    })
}
