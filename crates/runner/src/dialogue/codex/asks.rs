//! What Codex asks for: approvals, permissions, answers and forms; the rest is refused.

use formats::wire::json_rpc::{Id, Params};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::rpc::Rpc;
use super::super::{NotSettled, Outbox, in_one_line};
use super::{Codex, CodexRequest};
use crate::request::Answer;

/// An open ask.
#[derive(Debug)]
pub(super) struct CodexAsk {
    id: Id,
    what: CodexAskKind,
}

#[derive(Debug)]
enum CodexAskKind {
    /// A command or a change of files, and the answers that are offered.
    Approval(Option<Vec<Box<RawValue>>>),
    /// More rights than the sandbox gives.
    Permissions(Option<Box<RawValue>>),
    /// Questions of the model.
    Questions,
    /// A form, or an approval, of a tool server.
    Form,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Approval {
    available_decisions: Option<Vec<Box<RawValue>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PermissionsRequest {
    permissions: Option<Box<RawValue>>,
}

impl Codex {
    pub(super) fn on_request(
        &mut self,
        id: &Id,
        method: &str,
        params: Params<'_>,
        out: &mut Outbox,
    ) {
        let what = match method {
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
                let approval: Approval = params.read_or_default();
                CodexAskKind::Approval(approval.available_decisions)
            }
            "item/permissions/requestApproval" => {
                let asked: PermissionsRequest = params.read_or_default();
                CodexAskKind::Permissions(asked.permissions)
            }
            "item/tool/requestUserInput" => CodexAskKind::Questions,
            "mcpServer/elicitation/request" => CodexAskKind::Form,
            // Tools and tokens of the client, and the questions of an older protocol.
            _ => return self.rpc.refuse(id, method, out),
        };
        let wanted = CodexAsk {
            id: id.clone(),
            what,
        };
        // The reader emits the ask under this id, too.
        self.asks.insert(id.json().to_owned(), wanted);
    }
}

impl CodexAsk {
    pub(super) fn settle(
        &self,
        rpc: &Rpc<CodexRequest>,
        answer: &Answer,
        out: &mut Outbox,
    ) -> Result<(), NotSettled> {
        let (is_allowed, is_lasting, input) = match answer {
            Answer::Allow { input } => (true, false, input.as_deref()),
            Answer::AllowAlways { input } => (true, true, input.as_deref()),
            Answer::Deny { .. } => (false, false, None),
        };
        let result = match &self.what {
            CodexAskKind::Approval(_) | CodexAskKind::Permissions(_) if input.is_some() => {
                return Err(NotSettled::FixedInput);
            }
            CodexAskKind::Approval(_) if !is_allowed => json!({"decision": "decline"}),
            CodexAskKind::Approval(offered) if is_lasting => {
                json!({"decision": lasting(offered.as_deref())})
            }
            CodexAskKind::Approval(_) => json!({"decision": "accept"}),
            CodexAskKind::Permissions(asked) if is_allowed => {
                let scope = if is_lasting { "session" } else { "turn" };
                json!({"permissions": asked, "scope": scope})
            }
            // An answer has no word for a denial: to grant nothing is one.
            CodexAskKind::Permissions(_) => json!({"permissions": {}}),
            CodexAskKind::Questions => json!({"answers": answers(input)?}),
            CodexAskKind::Form if is_allowed => {
                let content = input.map(in_one_line).transpose()?;
                json!({"action": "accept", "content": content})
            }
            CodexAskKind::Form => json!({"action": "decline"}),
        };
        rpc.answer(&self.id, result, out);
        Ok(())
    }
}

/// How to say "always": for the session, or by the rule that Codex proposes.
fn lasting(offered: Option<&[Box<RawValue>]>) -> Value {
    let for_session = json!("acceptForSession");
    let Some(offered) = offered else {
        return for_session;
    };
    let mut offered = (offered.iter()).filter_map(|it| serde_json::from_str(it.get()).ok());
    let is_lasting =
        |it: &Value| *it == for_session || it.get("acceptWithExecpolicyAmendment").is_some();
    // Not every approval offers to be remembered; this one then holds once.
    offered.find(is_lasting).unwrap_or(json!("accept"))
}

/// The answers by question; they may come inside of the questions' own input.
fn answers(input: Option<&str>) -> Result<Value, NotSettled> {
    let input = input.unwrap_or("{}");
    let mut input: Value = serde_json::from_str(input).map_err(|_| NotSettled::BadInput)?;
    Ok(match input.get_mut("answers") {
        Some(answers) => answers.take(),
        None => input,
    })
}
