//! The client's side of a JSON-RPC connection: which request waits for which answer.

use std::collections::HashMap;

use formats::wire::json_rpc::{Call, Error, Failure, Id, METHOD_NOT_FOUND, Message, Response};
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

impl<A> Rpc<A> {
    pub(super) fn new(version: Option<&'static str>) -> Self {
        Self {
            version,
            n_requests: 0,
            asked: HashMap::new(),
        }
    }

    /// What the request with this id was made for.
    pub(super) fn answered(&mut self, id: &Id) -> Option<A> {
        // Requests of this side are numbered, so any other id is none of them.
        self.asked.remove(&id.json().parse().ok()?)
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
        // Both lines need the same id, so both are made here and then paired.
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

/// Agents print all kinds of lines; those that are no messages are ignored.
pub(super) fn read(line: &str) -> Option<Message<'_>> {
    Message::read(line.as_bytes()).ok()?
}
