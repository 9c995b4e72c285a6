//! One request on its way: sent, sent again while nothing has come back, and heard to its end.
//!
//! A request is repeated only before the first byte of its answer, because what has been said cannot be
//! unsaid, and was paid for. Redirects to other hosts are not followed, proxies of the environment are not
//! used, and the key goes to the address of the config and nowhere else.

mod client;
mod refusal;

use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use tokio::time::{sleep_until, timeout};

use self::client::client;
use self::refusal::Refusal;
use crate::endpoint::{Endpoint, EndpointError};
use crate::redact::{Redactor, secrets};
use crate::request::UnsupportedInput;
use crate::thread::Conversation;

/// Bytes of an answer; what is longer is no answer to a prompt.
const MAX_STREAM: usize = 256 << 20;
/// Bytes of an answer that is not streamed.
const MAX_WHOLE: usize = 32 << 20;
/// Between the first two tries; it doubles from then on.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// An endpoint that asks for more patience than this is not waited for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Characters of what a foreign server says that are repeated.
const MAX_WORDS: usize = 500;

/// What has come.
#[derive(Debug)]
pub enum CallEvent {
    /// The next bytes of the answer.
    Bytes(Bytes),
    /// Something worth telling: a code and a sentence.
    Notice(&'static str, String),
    /// The answer is over, or there is none.
    End(Result<(), CallError>),
}

/// Why there is no answer, or no more of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// The provider's own word where it has one, else ours.
    pub code: String,
    pub message: String,
}

type ResponseFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A request on its way.
pub struct Call {
    client: Client,
    url: Url,
    headers: HeaderMap,
    /// With what the provider does not know yet.
    short: Option<Bytes>,
    whole: Bytes,
    redactor: Redactor,
    max_retries: u32,
    n_retries: u32,
    limits: crate::endpoint::Limits,
    /// When the request was sent, or the last of its answer came. The caller may stop and resume
    /// waiting, so the timeouts count from here.
    heard_at: Instant,
    state: CallState,
}

enum CallState {
    /// Until then.
    Waiting(Instant),
    Sending(ResponseFuture<Result<Response, CallFailure>>),
    Refusing(ResponseFuture<Refusal>),
    Streaming(Box<Streaming>),
    Done,
}

struct Streaming {
    response: Response,
    n_bytes: usize,
    /// Nothing may be said twice.
    has_begun: bool,
    /// An answer in one piece, as far as it has come.
    gathered: Option<Vec<u8>>,
}

/// Why a request was not answered.
enum CallFailure {
    Transport(reqwest::Error),
    TooLate,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("url", &self.url.as_str())
            .finish_non_exhaustive()
    }
}

impl From<EndpointError> for CallError {
    fn from(err: EndpointError) -> Self {
        let mut message = model::error_chain(&err);
        if let Some(hint) = err.hint() {
            message = format!("{message}\nhint: {hint}");
        }
        failed("bad_endpoint", message)
    }
}

impl From<UnsupportedInput> for CallError {
    fn from(refused: UnsupportedInput) -> Self {
        failed("bad_request", refused.to_string())
    }
}

impl Call {
    /// A request that is sent when it is first asked for what came.
    pub fn new(endpoint: &Endpoint, conversation: &Conversation) -> Result<Self, CallError> {
        let (headers, key) = endpoint.headers()?;
        let (short, whole) = conversation.bodies(endpoint)?;
        let others = endpoint.headers.iter();
        let others = others.flat_map(|(name, value)| secrets(name, value));
        let session = endpoint.openclaw.session_key.as_deref();
        Ok(Self {
            client: client(endpoint.limits.connect)?,
            url: endpoint.url(),
            headers,
            short: short.as_ref().map(bytes),
            whole: bytes(&whole),
            redactor: Redactor::new(key.as_deref().into_iter().chain(others).chain(session)),
            max_retries: endpoint.max_retries,
            n_retries: 0,
            limits: endpoint.limits,
            heard_at: Instant::now(),
            state: CallState::Waiting(Instant::now()),
        })
    }

    /// Waits for what comes next. May be dropped and called again: nothing is lost.
    pub async fn next(&mut self) -> CallEvent {
        loop {
            match &mut self.state {
                CallState::Waiting(until) => {
                    sleep_until((*until).into()).await;
                    self.heard_at = Instant::now();
                    self.state = CallState::Sending(self.send());
                }
                CallState::Sending(sending) => {
                    let sent = sending.await;
                    if let Some(heard) = self.sent(sent) {
                        return heard;
                    }
                }
                CallState::Refusing(refusal) => {
                    let refusal = refusal.await;
                    return self.refused(&refusal);
                }
                CallState::Streaming(_) => {
                    if let Some(heard) = self.stream().await {
                        return heard;
                    }
                }
                CallState::Done => return CallEvent::End(Ok(())),
            }
        }
    }

    fn send(&self) -> ResponseFuture<Result<Response, CallFailure>> {
        let body = self.short.as_ref().unwrap_or(&self.whole).clone();
        let request = self.client.post(self.url.clone());
        let request = request.headers(self.headers.clone()).body(body);
        let limit = self.limits.first_byte;
        Box::pin(async move {
            match timeout(limit, request.send()).await {
                Ok(sent) => sent.map_err(CallFailure::Transport),
                Err(_) => Err(CallFailure::TooLate),
            }
        })
    }

    fn sent(&mut self, sent: Result<Response, CallFailure>) -> Option<CallEvent> {
        let response = match sent {
            Ok(response) => response,
            Err(CallFailure::TooLate) => return Some(self.give_up(self.too_late())),
            Err(CallFailure::Transport(err)) => return Some(self.lost(&err)),
        };
        if !response.status().is_success() {
            self.state = CallState::Refusing(Box::pin(Refusal::read(response)));
            return None;
        }
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let is_whole = kind.starts_with("application/json");
        if !is_whole && !kind.starts_with("text/event-stream") && !kind.is_empty() {
            let kind = self.words(kind);
            let message =
                format!("the endpoint answered with `{kind}`, which is no answer of a model");
            return Some(self.give_up(failed("bad_answer", message)));
        }
        self.state = CallState::Streaming(Box::new(Streaming {
            response,
            n_bytes: 0,
            has_begun: false,
            gathered: is_whole.then(Vec::new),
        }));
        None
    }

    async fn stream(&mut self) -> Option<CallEvent> {
        let CallState::Streaming(it) = &mut self.state else {
            return None;
        };
        let limit = match it.has_begun {
            true => self.limits.idle,
            false => self.limits.first_byte,
        };
        let left = limit.saturating_sub(self.heard_at.elapsed());
        let Ok(chunk) = timeout(left, it.response.chunk()).await else {
            let error = match it.has_begun {
                true => {
                    let idle = self.limits.idle;
                    failed(
                        "idle_timeout",
                        format!("the endpoint sent nothing for {idle:?}"),
                    )
                }
                false => self.too_late(),
            };
            return Some(self.give_up(error));
        };
        match chunk {
            Ok(Some(chunk)) => self.on_chunk(&chunk),
            Ok(None) => Some(self.ended()),
            Err(err) if it.has_begun => {
                let words = self.words(&chain(&err));
                let message =
                    format!("the connection was lost in the middle of the answer: {words}");
                Some(self.give_up(failed("connection_lost", message)))
            }
            Err(err) => Some(self.lost(&err)),
        }
    }

    fn on_chunk(&mut self, chunk: &[u8]) -> Option<CallEvent> {
        let CallState::Streaming(it) = &mut self.state else {
            return None;
        };
        it.has_begun |= !chunk.is_empty();
        self.heard_at = Instant::now();
        it.n_bytes += chunk.len();
        let limit = if it.gathered.is_some() {
            MAX_WHOLE
        } else {
            MAX_STREAM
        };
        if it.n_bytes > limit {
            let message = format!("the answer is longer than {limit} bytes");
            return Some(self.give_up(failed("too_large", message)));
        }
        if let Some(gathered) = &mut it.gathered {
            gathered.extend_from_slice(chunk);
            return None;
        }
        let shown = self.redactor.push(chunk);
        (!shown.is_empty()).then(|| CallEvent::Bytes(shown.into()))
    }

    fn ended(&mut self) -> CallEvent {
        let state = std::mem::replace(&mut self.state, CallState::Done);
        let mut rest = Vec::new();
        if let CallState::Streaming(it) = state
            && let Some(whole) = it.gathered
        {
            // One line is one frame; line ends inside JSON are white space.
            let line = whole.iter().map(|it| {
                if matches!(it, b'\n' | b'\r') {
                    b' '
                } else {
                    *it
                }
            });
            rest = self.redactor.push(&line.collect::<Vec<u8>>());
        }
        rest.extend(self.redactor.end());
        match rest.is_empty() {
            true => CallEvent::End(Ok(())),
            false => CallEvent::Bytes(rest.into()),
        }
    }

    /// The endpoint was not reached, or hung up before it said anything.
    fn lost(&mut self, err: &reqwest::Error) -> CallEvent {
        if err.is_redirect() {
            let message = "the endpoint sends its callers to another host, and the key stays here";
            return self.give_up(failed("redirected", message.to_owned()));
        }
        let words = self.words(&chain(err));
        let message = format!("the endpoint cannot be reached: {words}");
        self.retry(None, failed("unreachable", message))
    }

    fn refused(&mut self, refusal: &Refusal) -> CallEvent {
        let error = self.error(refusal);
        if self.short.is_some() && refusal.is_forgotten(&error) {
            self.short = None;
            self.state = CallState::Waiting(Instant::now());
            let words = "the endpoint has forgotten the conversation; it is sent again, in full";
            return CallEvent::Notice("history_resent", words.to_owned());
        }
        if refusal.status.is_redirection() {
            let message = "the endpoint sends its callers elsewhere, and the key stays here";
            return self.give_up(failed("redirected", message.to_owned()));
        }
        let may_pass = matches!(
            refusal.status.as_u16(),
            408 | 429 | 500 | 502 | 503 | 504 | 529
        );
        let is_final = refusal
            .headers
            .get("x-should-retry")
            .is_some_and(|it| it == "false");
        match may_pass && !is_final {
            true => self.retry(refusal.retry_after(), error),
            false => self.give_up(error),
        }
    }

    /// Tries once more, if there is a try left and it is not too long until then.
    fn retry(&mut self, wanted: Option<Duration>, error: CallError) -> CallEvent {
        let is_too_long = wanted.is_some_and(|it| it > MAX_RETRY_AFTER);
        if self.n_retries >= self.max_retries || is_too_long {
            return self.give_up(error);
        }
        let pause = wanted.unwrap_or_else(|| self.pause());
        self.n_retries += 1;
        self.state = CallState::Waiting(Instant::now() + pause);
        let words = format!(
            "{}; trying again in {:.1} s ({} of {})",
            error.message,
            pause.as_secs_f64(),
            self.n_retries,
            self.max_retries
        );
        CallEvent::Notice("api_retry", words)
    }

    /// Longer every time, and never the same for all who wait.
    fn pause(&self) -> Duration {
        let doubled = FIRST_PAUSE * 2_u32.saturating_pow(self.n_retries.min(16));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let chance = now.map_or(0, |it| it.subsec_nanos()) % 250;
        doubled
            .min(LONGEST_PAUSE)
            .mul_f64(1.0 + f64::from(chance) / 1000.0)
    }

    fn give_up(&mut self, error: CallError) -> CallEvent {
        self.state = CallState::Done;
        CallEvent::End(Err(error))
    }

    fn too_late(&self) -> CallError {
        let limit = self.limits.first_byte;
        failed(
            "first_byte_timeout",
            format!("the endpoint did not answer within {limit:?}"),
        )
    }

    /// What an endpoint says about its refusal.
    fn error(&self, refusal: &Refusal) -> CallError {
        // Some refuse with an event, as if they had begun to stream.
        let text = refusal.body.trim();
        let text = text.strip_prefix("data:").unwrap_or(text);
        let text = text.split("\n\n").next().unwrap_or(text);
        let body: Value = serde_json::from_str(text).unwrap_or_default();
        let said = match &body["error"] {
            Value::Null => &body,
            error => error,
        };
        let text = |name: &str| said[name].as_str().filter(|it| !it.is_empty());
        let status = refusal.status.as_u16();
        let words = text("message").or(said.as_str()).unwrap_or(&refusal.body);
        let words = self.words(words);
        CallError {
            code: text("code")
                .or(text("type"))
                .map_or_else(|| format!("http_{status}"), |it| self.words(it)),
            message: match words.is_empty() {
                true => format!("the endpoint answered HTTP {status}"),
                false => format!("the endpoint answered HTTP {status}: {words}"),
            },
        }
    }

    /// Foreign words that may be repeated.
    fn words(&self, text: &str) -> String {
        self.redactor
            .text(text.trim())
            .chars()
            .take(MAX_WORDS)
            .collect()
    }
}

fn failed(code: &str, message: String) -> CallError {
    CallError {
        code: code.to_owned(),
        message,
    }
}

fn bytes(body: &Value) -> Bytes {
    body.to_string().into()
}

/// An error and what caused it, without the address, which the user knows.
fn chain(err: &reqwest::Error) -> String {
    match std::error::Error::source(err) {
        Some(source) => model::error_chain(source),
        None => err.to_string(),
    }
}

#[cfg(test)]
mod tests;
