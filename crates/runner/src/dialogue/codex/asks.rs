//! What Codex asks for: approvals, permissions, answers and forms; the rest is refused.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::rpc::{Params, Rpc};
use super::super::{NotSettled, Outbox, in_one_line};
use super::{Asked, Codex};
use crate::request::Answer;

/// An ask that waits.
#[derive(Debug)]
pub(super) struct Wanted {
    id: Box<RawValue>,
    what: What,
}

#[derive(Debug)]
enum What {
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
struct Permissions {
    permissions: Option<Box<RawValue>>,
}

impl Codex {
    pub(super) fn wanted(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Params<'_>,
        out: &mut Outbox,
    ) {
        let what = match method {
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
                let approval: Approval = params.read();
                What::Approval(approval.available_decisions)
            }
            "item/permissions/requestApproval" => {
                let asked: Permissions = params.read();
                What::Permissions(asked.permissions)
            }
            "item/tool/requestUserInput" => What::Questions,
            "mcpServer/elicitation/request" => What::Form,
            // Tools and tokens of the client, and the questions of an older protocol.
            _ => return self.rpc.refuse(id, method, out),
        };
        let wanted = Wanted {
            id: id.to_owned(),
            what,
        };
        self.asks.insert(id.get().to_owned(), wanted);
    }
}

impl Wanted {
    pub(super) fn settle(
        &self,
        rpc: &Rpc<Asked>,
        answer: &Answer,
        out: &mut Outbox,
    ) -> Result<(), NotSettled> {
        let (is_allowed, is_lasting, input) = match answer {
            Answer::Allow { input } => (true, false, input.as_deref()),
            Answer::AllowAlways { input } => (true, true, input.as_deref()),
            Answer::Deny { .. } => (false, false, None),
        };
        let result = match &self.what {
            What::Approval(_) | What::Permissions(_) if input.is_some() => {
                return Err(NotSettled::FixedInput);
            }
            What::Approval(_) if !is_allowed => json!({"decision": "decline"}),
            What::Approval(offered) if is_lasting => {
                json!({"decision": lasting(offered.as_deref())})
            }
            What::Approval(_) => json!({"decision": "accept"}),
            What::Permissions(asked) if is_allowed => {
                let scope = if is_lasting { "session" } else { "turn" };
                json!({"permissions": asked, "scope": scope})
            }
            What::Permissions(_) => json!({"permissions": {}}),
            What::Questions => json!({"answers": answers(input)?}),
            What::Form if is_allowed => {
                let content = input.map(in_one_line).transpose()?;
                json!({"action": "accept", "content": content})
            }
            What::Form => json!({"action": "decline"}),
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
