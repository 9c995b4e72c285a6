//! JSON-RPC as agents speak it over a pipe: one message per line, requests in both directions.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Outbox, PrivateLine};

/// The client's side of a connection; `A` is what a request was made for.
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
        id: &'a RawValue,
        method: Cow<'a, str>,
        params: Params<'a>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Params<'a>,
    },
    Result(A, Params<'a>),
    Error(A, RpcError),
}

/// The parameters of a request, or the result of one.
#[derive(Clone, Copy)]
pub(super) struct Params<'a>(Option<&'a RawValue>);

#[derive(Clone, Debug, Deserialize)]
pub(super) struct RpcError {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    data: Value,
}

#[derive(Deserialize)]
struct Incoming<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<RpcError>,
}

#[derive(Serialize)]
struct Outgoing<'a, P> {
    #[serde(skip_serializing_if = "Option::is_none")]
    jsonrpc: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Id<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Id<'a> {
    Ours(u64),
    Theirs(&'a RawValue),
}

#[derive(Serialize)]
struct Refusal {
    code: i64,
    message: String,
}

const METHOD_NOT_FOUND: i64 = -32601;

impl<A> Rpc<A> {
    pub(super) fn new(version: Option<&'static str>) -> Self {
        Self {
            version,
            n_requests: 0,
            asked: HashMap::new(),
        }
    }

    pub(super) fn read<'a>(&mut self, line: &'a str) -> Option<RpcMessage<'a, A>> {
        let it: Incoming<'a> = serde_json::from_str(line).ok()?;
        let params = Params(it.params);
        match (it.method, it.id) {
            (Some(method), Some(id)) => Some(RpcMessage::Request { id, method, params }),
            (Some(method), None) => Some(RpcMessage::Notification { method, params }),
            (None, id) => {
                let asked = self.asked.remove(&id?.get().parse().ok()?)?;
                Some(match it.error {
                    Some(error) => RpcMessage::Error(asked, error),
                    None => RpcMessage::Result(asked, Params(it.result)),
                })
            }
        }
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
        let id = Some(Id::Ours(self.n_requests));
        let params = Some(params);
        out.send(&Outgoing {
            method: Some(method),
            params,
            ..self.message(id)
        });
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
        hidden.send(&Outgoing {
            method: Some(method),
            params: Some(shown),
            ..self.message(Some(Id::Ours(self.n_requests)))
        });
        if let [line, shown] = &mut hidden.lines[..] {
            out.private.push(PrivateLine {
                line: std::mem::take(line),
                shown: std::mem::take(shown),
            });
        }
    }

    pub(super) fn notify(&self, method: &str, params: Option<impl Serialize>, out: &mut Outbox) {
        out.send(&Outgoing {
            method: Some(method),
            params,
            ..self.message(None)
        });
    }

    pub(super) fn answer(&self, id: &RawValue, result: impl Serialize, out: &mut Outbox) {
        out.send(&Outgoing {
            result: Some(result),
            ..self.message(Some(Id::Theirs(id)))
        });
    }

    /// The requested method is not supported.
    pub(super) fn refuse(&self, id: &RawValue, method: &str, out: &mut Outbox) {
        let error = Some(Refusal {
            code: METHOD_NOT_FOUND,
            message: format!("method not found: {method}"),
        });
        out.send(&Outgoing {
            error,
            ..self.message::<()>(Some(Id::Theirs(id)))
        });
    }

    fn message<'a, P>(&self, id: Option<Id<'a>>) -> Outgoing<'a, P> {
        Outgoing {
            jsonrpc: self.version,
            id,
            method: None,
            params: None,
            result: None,
            error: None,
        }
    }
}

impl<'a> Params<'a> {
    /// Parses `T` leniently; missing fields become defaults.
    pub(super) fn read<T: Deserialize<'a> + Default>(self) -> T {
        let read = self.0.and_then(|it| serde_json::from_str(it.get()).ok());
        read.unwrap_or_default()
    }
}

impl RpcError {
    /// The agent's message; some send only a number.
    pub(super) fn text(self) -> String {
        match self.data["details"].as_str() {
            Some(details) => format!("{}: {details}", self.message),
            None if self.message.is_empty() => format!("error {}", self.code),
            None => self.message,
        }
    }
}
