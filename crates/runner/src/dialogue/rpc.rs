//! The client's side of a JSON-RPC connection: which request waits for which answer.

use std::borrow::Cow;
use std::collections::HashMap;

use formats::wire::json_rpc::{
    Call, Error, Failure, Id, METHOD_NOT_FOUND, Message, Params, Response,
};
use serde::Serialize;

use super::{Outbox, PrivateLine};

/// `A` is what a request was made for.
#[derive(Debug)]
pub(super) struct Rpc<A> {
    /// What stands in `jsonrpc`; Codex leaves it out.
    version: Option<&'static str>,
    n_requests: u64,
    asked: HashMap<u64, A>,
}

/// One message of the agent.
pub(super) enum RpcMessage<'a, A> {
    Request {
        id: Id,
        method: Cow<'a, str>,
        params: Params<'a>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Params<'a>,
    },
    Result(A, Params<'a>),
    Error(A, Error),
}

impl<A> Rpc<A> {
    pub(super) fn new(version: Option<&'static str>) -> Self {
        Self {
            version,
            n_requests: 0,
            asked: HashMap::new(),
        }
    }

    /// Agents print all kinds of lines; what is no message means nothing here.
    pub(super) fn read<'a>(&mut self, line: &'a str) -> Option<RpcMessage<'a, A>> {
        Some(match Message::read(line.as_bytes()).ok()?? {
            Message::Request { id, method, params } => RpcMessage::Request { id, method, params },
            Message::Notification { method, params } => RpcMessage::Notification { method, params },
            Message::Answer { id, result } => {
                let asked = self.asked.remove(&id.json().parse().ok()?)?;
                match result {
                    Ok(result) => RpcMessage::Result(asked, result),
                    Err(error) => RpcMessage::Error(asked, error),
                }
            }
        })
    }

    pub(super) fn request(
        &mut self,
        asked: A,
        method: &str,
        params: impl Serialize,
        out: &mut Outbox,
    ) {
        self.n_requests += 1;
        self.asked.insert(self.n_requests, asked);
        out.send(&self.call(Some(self.n_requests), method, Some(params)));
    }

    /// A request that holds a secret; `shown` are its parameters without.
    pub(super) fn ask_private(
        &mut self,
        asked: A,
        method: &str,
        params: impl Serialize,
        shown: impl Serialize,
        out: &mut Outbox,
    ) {
        let mut hidden = Outbox::default();
        self.request(asked, method, params, &mut hidden);
        hidden.send(&self.call(Some(self.n_requests), method, Some(shown)));
        if let [line, shown] = &mut hidden.lines[..] {
            out.private.push(PrivateLine {
                line: std::mem::take(line),
                shown: std::mem::take(shown),
            });
        }
    }

    pub(super) fn notify(&self, method: &str, params: Option<impl Serialize>, out: &mut Outbox) {
        out.send(&self.call(None, method, params));
    }

    fn call<'a, P>(&self, id: Option<u64>, method: &'a str, params: Option<P>) -> Call<'a, u64, P> {
        Call {
            jsonrpc: self.version,
            id,
            method,
            params,
        }
    }

    pub(super) fn answer(&self, id: &Id, result: impl Serialize, out: &mut Outbox) {
        out.send(&Response {
            jsonrpc: self.version,
            id,
            result,
        });
    }

    /// The requested method is not supported.
    pub(super) fn refuse(&self, id: &Id, method: &str, out: &mut Outbox) {
        out.send(&Failure {
            jsonrpc: self.version,
            id,
            error: Error::new(METHOD_NOT_FOUND, format!("method not found: {method}")),
        });
    }
}
