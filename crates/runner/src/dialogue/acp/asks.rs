//! Requests of the agent: permissions and forms become asks, the rest is refused.

use formats::wire::acp::{
    PermissionAnswer, PermissionOption, PermissionOutcome, PermissionRequest,
};
use formats::wire::json_rpc::{Id, Params};
use serde_json::{Value, json};

use super::super::rpc::Rpc;
use super::super::{NotSettled, Outbox, in_one_line};
use super::{Acp, AcpRequest, AcpTurn};
use crate::request::Answer;

/// An open ask.
#[derive(Debug)]
pub(super) struct AcpAsk {
    id: Id,
    what: AcpAskKind,
}

#[derive(Debug)]
enum AcpAskKind {
    Permission(Vec<PermissionOption<String>>),
    Form,
}

impl Acp {
    pub(super) fn on_request(
        &mut self,
        id: &Id,
        method: &str,
        params: Params<'_>,
        out: &mut Outbox,
    ) {
        let what = match method {
            "session/request_permission" => {
                let request: PermissionRequest = params.read_or_default();
                AcpAskKind::Permission(request.options)
            }
            "elicitation/create" => AcpAskKind::Form,
            // Refused and not ignored, because the agent waits for an answer.
            _ => return self.rpc.refuse(id, method, out),
        };
        let wanted = AcpAsk {
            id: id.clone(),
            what,
        };
        // It may ask on until it sees the cancellation, and would wait for each answer.
        if self.run == AcpTurn::Stopping {
            return wanted.withdraw(&self.rpc, out);
        }
        self.asks.insert(ask_id(id), wanted);
    }

    /// Cancels the open asks, which the protocol requires of a client that cancels.
    pub(super) fn withdraw_all(&mut self, out: &mut Outbox) {
        for (_, wanted) in self.asks.drain() {
            wanted.withdraw(&self.rpc, out);
        }
    }
}

impl AcpAsk {
    pub(super) fn settle(
        &self,
        rpc: &Rpc<AcpRequest>,
        answer: &Answer,
        out: &mut Outbox,
    ) -> Result<(), NotSettled> {
        match &self.what {
            AcpAskKind::Permission(options) => {
                let outcome = choose(options, answer)?;
                rpc.answer(&self.id, PermissionAnswer { outcome }, out);
            }
            AcpAskKind::Form => rpc.answer(&self.id, filled_in(answer)?, out),
        }
        Ok(())
    }

    fn withdraw(&self, rpc: &Rpc<AcpRequest>, out: &mut Outbox) {
        match &self.what {
            AcpAskKind::Permission(_) => {
                let outcome = PermissionOutcome::Cancelled;
                rpc.answer(&self.id, PermissionAnswer { outcome }, out);
            }
            AcpAskKind::Form => rpc.answer(&self.id, json!({"action": "cancel"}), out),
        }
    }
}

/// The option for an answer. A kind that is not offered falls back to the other one of the same
/// side.
fn choose<'a>(
    options: &'a [PermissionOption<String>],
    answer: &Answer,
) -> Result<PermissionOutcome<'a>, NotSettled> {
    let kinds = match answer {
        // The protocol has no place for another input.
        Answer::Allow { input: Some(_) } | Answer::AllowAlways { input: Some(_) } => {
            return Err(NotSettled::FixedInput);
        }
        Answer::Allow { input: None } => ["allow_once", "allow_always"],
        Answer::AllowAlways { input: None } => ["allow_always", "allow_once"],
        Answer::Deny { .. } => ["reject_once", "reject_always"],
    };
    let find = |kind: &&str| options.iter().find(|it| it.kind == *kind);
    match kinds.iter().find_map(find) {
        Some(option) => Ok(PermissionOutcome::Selected {
            option_id: &option.option_id,
        }),
        // Nothing of that side is offered; a cancelled request runs nothing, which is safe.
        None => Ok(PermissionOutcome::Cancelled),
    }
}

fn filled_in(answer: &Answer) -> Result<Value, NotSettled> {
    let (Answer::Allow { input } | Answer::AllowAlways { input }) = answer else {
        return Ok(json!({"action": "decline"}));
    };
    let content = in_one_line(input.as_deref().unwrap_or("{}"))?;
    Ok(json!({"action": "accept", "content": content}))
}

/// The id under which the reader emits the ask.
fn ask_id(id: &Id) -> String {
    let text = id.text();
    // The ACP writer of linkspan gives asks this prefix, which the reader takes off again.
    text.strip_prefix("ask-").unwrap_or(&text).to_owned()
}
