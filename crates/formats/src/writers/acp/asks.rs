//! Questions about tool calls: in a file with their answers, on a connection for the client to answer.

use std::collections::HashSet;

use model::{Ask, AskId, AskSettled, Class, Decision, Event, Text};

use super::{Acp, AcpProfile, hash, line, meta, wire};
use crate::wire::json_rpc;
use crate::writers::take;

#[derive(Clone, Debug)]
pub(super) struct AcpOpenAsk {
    id: AskId<'static>,
    pub(super) request: String,
    /// The call it is about.
    tool: String,
    /// What the call was to do, by hash.
    input: Option<u64>,
    /// A lasting permission was offered.
    is_lasting: bool,
}

/// Asks remembered; the requests of more are numbered.
const MAX_ASKED: usize = 65_536;

/// The asks there were, by hash: no two requests may have the same id.
#[derive(Clone, Debug, Default)]
pub(super) struct UsedRequestIds {
    n: u64,
    hashes: HashSet<u64>,
}

type Offered = wire::PermissionOption<&'static str>;

const ALLOW: Offered = wire::PermissionOption {
    option_id: "allow",
    name: "Allow",
    kind: "allow_once",
};
const ALLOW_ALWAYS: Offered = wire::PermissionOption {
    option_id: "allow_always",
    name: "Always allow",
    kind: "allow_always",
};
const REJECT: Offered = wire::PermissionOption {
    option_id: "reject",
    name: "Reject",
    kind: "reject_once",
};
const ONCE: &[Offered] = &[ALLOW, REJECT];
const LASTING: &[Offered] = &[ALLOW, ALLOW_ALWAYS, REJECT];

impl UsedRequestIds {
    fn request_id(&mut self, ask: &AskId<'_>) -> String {
        self.n += 1;
        if self.hashes.len() < MAX_ASKED && self.hashes.insert(hash(ask)) {
            return format!("ask-{ask}");
        }
        format!("ask-{ask}~{}", self.n)
    }
}

impl Acp {
    pub(super) fn ask(&mut self, event: &Event<'_>, ask: &Ask<'_>, out: &mut Vec<u8>) {
        let tool = ask.item.as_ref().map_or(ask.id.as_str(), |it| it.as_str());
        // Only a rule that the agent suggested can be remembered.
        let is_lasting = ask.suggestions.is_some();
        // Clients show the title and little else: an empty one would be a question without words.
        let title = if ask.title.is_empty() {
            Text::new(&*ask.tool)
        } else {
            ask.title.by_ref()
        };
        let open = self.find_tool(tool);
        let class = open.and_then(|it| it.class.clone());
        let class = class.as_deref();
        let tool_call = wire::ToolCall {
            title: Some(title),
            kind: open.map(|it| it.kind),
            status: Some(wire::ToolCallStatus::Pending),
            content: class.map(|it| self.shown(it)).unwrap_or_default(),
            locations: class.map(|it| self.locations(it)).unwrap_or_default(),
            raw_input: ask.input.as_ref(),
            meta: meta(event),
            ..wire::ToolCall::of(tool)
        };
        let request = match &self.connection {
            // Several sessions share a connection, and ids of asks are unique in one only.
            Some(_) => format!("{}/{}", self.session.id, ask.id),
            None => self.asked.request_id(&ask.id),
        };
        let message = wire::PermissionCall {
            jsonrpc: json_rpc::VERSION,
            id: Some(&request),
            method: wire::REQUEST_PERMISSION,
            params: Some(wire::RequestPermission {
                session_id: &self.session.id,
                tool_call,
                options: if is_lasting { LASTING } else { ONCE },
            }),
        };
        match &mut self.connection {
            Some(connection) => connection.asked(ask, &request, &message),
            None => line(out, &message),
        }
        self.session.is_sent = true;
        self.asks.push(AcpOpenAsk {
            id: ask.id.clone().into_owned(),
            request,
            tool: tool.to_owned(),
            input: ask.input.as_ref().map(|it| hash(&it.get())),
            is_lasting,
        });
    }

    pub(super) fn settle(
        &mut self,
        event: &Event<'_>,
        settled: &AskSettled<'_>,
        out: &mut Vec<u8>,
    ) {
        let Some(ask) = take(&mut self.asks, |it| it.id == settled.id) else {
            return;
        };
        let (outcome, is_allowed) = match settled.decision {
            Decision::AllowedAlways if ask.is_lasting => (selected(&ALLOW_ALWAYS), true),
            // A lasting permission that was not offered cannot be the answer.
            Decision::Allowed | Decision::AllowedAlways => (selected(&ALLOW), true),
            Decision::Denied => (selected(&REJECT), false),
            Decision::Withdrawn | Decision::Lost => (wire::PermissionOutcome::Cancelled, false),
        };
        if self.connection.is_none() {
            answer(ask.request, outcome, out);
        }
        // A call that was not allowed ends with a result of its own.
        if !is_allowed || self.find_tool(&ask.tool).is_none() {
            return;
        }
        let input = settled.input.as_ref();
        let update = wire::ToolCall {
            status: (self.shape == AcpProfile::Default).then_some(wire::ToolCallStatus::InProgress),
            // Only where the answer has changed the input: the client has what it was asked about.
            raw_input: input.filter(|it| Some(hash(&it.get())) != ask.input),
            meta: meta(event),
            ..wire::ToolCall::of(&ask.tool)
        };
        if update.status.is_some() || update.raw_input.is_some() {
            self.send(out, wire::SessionUpdate::ToolCallUpdate(update));
        }
    }

    /// What is to be approved: the changes, or the whole command.
    fn shown<'a>(&self, class: &'a Class<'_>) -> Vec<wire::ToolCallContent<'a>> {
        let command = class.command.as_ref().filter(|_| class.diffs.is_empty());
        let command = command.map(|it| wire::ToolCallContent::Content {
            content: wire::ContentBlock::Text { text: it.by_ref() },
        });
        self.diffs(class).into_iter().chain(command).collect()
    }

    pub(super) fn is_asked(&self, tool: &str) -> bool {
        self.asks.iter().any(|it| it.tool == tool)
    }
}

fn selected(option: &Offered) -> wire::PermissionOutcome<'static> {
    wire::PermissionOutcome::Selected {
        option_id: option.option_id,
    }
}

pub(super) fn answer(id: String, outcome: wire::PermissionOutcome<'_>, out: &mut Vec<u8>) {
    line(
        out,
        &json_rpc::Response {
            jsonrpc: json_rpc::VERSION,
            id,
            result: wire::PermissionAnswer { outcome },
        },
    );
}
