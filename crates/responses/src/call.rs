//! One request on its way: sent, sent again while nothing has come back, and read to its end.
//!
//! A request is repeated only before the first byte of its answer, because what has been shown cannot be
//! taken back, and was paid for. Redirects to other hosts are not followed, proxies of the environment are not
//! used, and the key goes to the address of the config and nowhere else.

mod client;
mod refusal;

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use self::client::client;
use self::refusal::Refusal;
use crate::endpoint::{Endpoint, EndpointError};
use crate::redact::{Redactor, secrets};
use crate::request::UnsupportedInput;
use crate::thread::Conversation;

/// Events that wait for the caller; beyond them the endpoint is not read.
const MAX_EVENTS: usize = 16;
/// The maximum size of an answer, in bytes; anything longer cannot be an answer to a prompt.
const MAX_STREAM: usize = 256 << 20;
/// Bytes of an answer that is not streamed.
const MAX_WHOLE: usize = 32 << 20;
/// Between the first two tries; it doubles from then on.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// An endpoint that asks for more patience than this is not waited for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Characters of a foreign message that are repeated.
const MAX_EXCERPT: usize = 500;

/// What has come.
#[derive(Debug)]
pub enum CallEvent {
    /// The next bytes of the answer.
    Bytes(Bytes),
    /// A notice: a code and a sentence.
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

/// A request on its way. It is made in a task of its own, so that its timeouts hold however seldom it is polled.
#[derive(Debug)]
pub struct Call {
    events: mpsc::Receiver<CallEvent>,
    #[expect(dead_code, reason = "dropping it ends the request")]
    task: JoinSet<()>,
}

/// A request and what it takes to make it again.
struct Exchange {
    client: Client,
    url: Url,
    headers: HeaderMap,
    /// With what the provider does not know yet.
    short: Option<Bytes>,
    whole: Bytes,
    redactor: Redactor,
    max_retries: u32,
    limits: crate::endpoint::Limits,
    events: mpsc::Sender<CallEvent>,
}

/// The result of an attempt, unless it failed permanently.
enum Attempt {
    Answered,
    /// The endpoint does not know the response that the short request continues.
    Forgotten,
    /// Another one may succeed, after the time that the endpoint asks for.
    Failed(Option<Duration>, CallError),
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
    pub fn new(endpoint: &Endpoint, conversation: &Conversation) -> Result<Self, CallError> {
        let (headers, key) = endpoint.headers()?;
        let (short, whole) = conversation.bodies(endpoint)?;
        let others = endpoint.headers.iter();
        // Headers of the config may be keys as well, and providers repeat those, too.
        let others = others.flat_map(|(name, value)| secrets(name, value));
        let session = endpoint.openclaw.session_key.as_deref();
        let (tx, events) = mpsc::channel(MAX_EVENTS);
        let exchange = Exchange {
            client: client(endpoint.limits.connect)?,
            url: endpoint.url(),
            headers,
            short: short.as_ref().map(bytes),
            whole: bytes(&whole),
            redactor: Redactor::new(key.as_deref().into_iter().chain(others).chain(session)),
            max_retries: endpoint.max_retries,
            limits: endpoint.limits,
            events: tx,
        };
        // Unlike a plain task, a set aborts its tasks when it is dropped.
        let mut task = JoinSet::new();
        task.spawn(exchange.run());
        Ok(Self { events, task })
    }

    /// Waits for what comes next. May be dropped and called again: nothing is lost.
    pub async fn next(&mut self) -> CallEvent {
        // The task sends the end before it exits.
        let event = self.events.recv().await;
        event.unwrap_or(CallEvent::End(Ok(())))
    }
}

impl Exchange {
    async fn run(mut self) {
        let end = self.exchange().await;
        self.emit(CallEvent::End(end)).await;
    }

    /// Waits while the caller falls behind; the timeouts do not count meanwhile.
    async fn emit(&self, event: CallEvent) {
        // The task is aborted with its receiver.
        self.events.send(event).await.ok();
    }

    async fn emit_bytes(&self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.emit(CallEvent::Bytes(bytes.into())).await;
        }
    }

    async fn exchange(&mut self) -> Result<(), CallError> {
        let mut n_retries = 0;
        loop {
            let (wanted, error) = match self.attempt().await? {
                Attempt::Answered => return Ok(()),
                Attempt::Forgotten => {
                    // From now on the whole conversation is sent, also by a retry.
                    self.short = None;
                    let text =
                        "the endpoint has forgotten the conversation; it is sent again, in full";
                    let notice = CallEvent::Notice("history_resent", text.to_owned());
                    self.emit(notice).await;
                    continue;
                }
                Attempt::Failed(wanted, error) => (wanted, error),
            };
            // A user would rather see the error than wait for minutes.
            let is_too_long = wanted.is_some_and(|it| it > MAX_RETRY_AFTER);
            if n_retries >= self.max_retries || is_too_long {
                return Err(error);
            }
            let pause = wanted.unwrap_or_else(|| pause(n_retries));
            n_retries += 1;
            let text = format!(
                "{}; trying again in {:.1} s ({n_retries} of {})",
                error.message,
                pause.as_secs_f64(),
                self.max_retries
            );
            self.emit(CallEvent::Notice("api_retry", text)).await;
            sleep(pause).await;
        }
    }

    /// Sends the request once, and reads the answer to its end.
    async fn attempt(&mut self) -> Result<Attempt, CallError> {
        // One limit for the head and the first byte: some answer at once and then say nothing.
        let deadline = Instant::now() + self.limits.first_byte;
        let body = self.short.as_ref().unwrap_or(&self.whole).clone();
        let request = self.client.post(self.url.clone());
        let request = request.headers(self.headers.clone()).body(body);
        let response = match timeout_at(deadline, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(err)) => return self.lost(&err),
            Err(_) => return Err(self.too_late()),
        };
        if !response.status().is_success() {
            return self.refused(&Refusal::read(response).await);
        }
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|it| it.to_str().ok()).unwrap_or_default();
        // An endpoint may ignore `stream` and answer in one piece.
        let is_whole = kind.starts_with("application/json");
        // A page of HTML with status 200 is what a wrong address often answers.
        if !is_whole && !kind.starts_with("text/event-stream") && !kind.is_empty() {
            let kind = self.excerpt(kind);
            let message =
                format!("the endpoint answered with `{kind}`, which is no answer of a model");
            return Err(failed("bad_answer", message));
        }
        self.read(response, deadline, is_whole).await
    }

    /// `is_whole`: the answer is one JSON object and no stream.
    async fn read(
        &mut self,
        mut response: Response,
        first_byte: Instant,
        is_whole: bool,
    ) -> Result<Attempt, CallError> {
        let limit = if is_whole { MAX_WHOLE } else { MAX_STREAM };
        let (mut n_bytes, mut whole) = (0, Vec::new());
        loop {
            let chunk = match n_bytes {
                0 => timeout_at(first_byte, response.chunk()).await,
                // Per piece and not for the whole answer, which may take as long as it likes.
                _ => timeout(self.limits.idle, response.chunk()).await,
            };
            let chunk = match chunk {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                Ok(Err(err)) if n_bytes == 0 => return self.lost(&err),
                Ok(Err(err)) => {
                    let cause = self.excerpt(&chain(&err));
                    let message =
                        format!("the connection was lost in the middle of the answer: {cause}");
                    return Err(failed("connection_lost", message));
                }
                Err(_) if n_bytes == 0 => return Err(self.too_late()),
                Err(_) => {
                    let message = format!("the endpoint sent nothing for {:?}", self.limits.idle);
                    return Err(failed("idle_timeout", message));
                }
            };
            n_bytes += chunk.len();
            if n_bytes > limit {
                let message = format!("the answer is longer than {limit} bytes");
                return Err(failed("too_large", message));
            }
            match is_whole {
                true => whole.extend_from_slice(&chunk),
                false => {
                    let shown = self.redactor.push(&chunk);
                    self.emit_bytes(shown).await;
                }
            }
        }
        // One line is one frame; line ends inside JSON are white space.
        let line_ends = whole.iter_mut().filter(|it| matches!(it, b'\n' | b'\r'));
        line_ends.for_each(|it| *it = b' ');
        let mut rest = self.redactor.push(&whole);
        // What was held back as the beginning of a secret turned out to be none.
        rest.extend(self.redactor.end());
        self.emit_bytes(rest).await;
        Ok(Attempt::Answered)
    }

    /// The endpoint was not reached, or hung up before its answer began.
    fn lost(&self, err: &reqwest::Error) -> Result<Attempt, CallError> {
        if err.is_redirect() {
            let message = "the endpoint sends its callers to another host, and the key stays here";
            return Err(failed("redirected", message.to_owned()));
        }
        let cause = self.excerpt(&chain(err));
        let message = format!("the endpoint cannot be reached: {cause}");
        Ok(Attempt::Failed(None, failed("unreachable", message)))
    }

    fn refused(&self, refusal: &Refusal) -> Result<Attempt, CallError> {
        let error = self.error(refusal);
        // Only a short request relies on the provider's memory, so this happens once at most.
        if self.short.is_some() && refusal.is_forgotten(&error) {
            return Ok(Attempt::Forgotten);
        }
        if refusal.status.is_redirection() {
            let message = "the endpoint sends its callers elsewhere, and the key stays here";
            return Err(failed("redirected", message.to_owned()));
        }
        let status = refusal.status.as_u16();
        // Overload, time-outs and faults of the server may pass; 529 is an overload, too.
        let may_pass = matches!(status, 408 | 429 | 500 | 502 | 503 | 504 | 529);
        // OpenAI says by this header that another try is pointless.
        let should_retry = refusal.headers.get("x-should-retry");
        match may_pass && should_retry.is_none_or(|it| it != "false") {
            true => Ok(Attempt::Failed(refusal.retry_after(), error)),
            false => Err(error),
        }
    }

    fn too_late(&self) -> CallError {
        let limit = self.limits.first_byte;
        failed(
            "first_byte_timeout",
            format!("the endpoint did not answer within {limit:?}"),
        )
    }

    /// The error in the body of a refusal.
    fn error(&self, refusal: &Refusal) -> CallError {
        // Some refuse with an event, as if they had begun to stream.
        let text = refusal.body.trim();
        let text = text.strip_prefix("data:").unwrap_or(text);
        let text = text.split("\n\n").next().unwrap_or(text);
        let body: Value = serde_json::from_str(text).unwrap_or_default();
        let error = match &body["error"] {
            // Some put the error at the top of the body, without an `error` around it.
            Value::Null => &body,
            error => error,
        };
        let text = |name: &str| error[name].as_str().filter(|it| !it.is_empty());
        let status = refusal.status.as_u16();
        let words = text("message").or(error.as_str()).unwrap_or(&refusal.body);
        let words = self.excerpt(words);
        CallError {
            code: text("code")
                .or(text("type"))
                .map_or_else(|| format!("http_{status}"), |it| self.excerpt(it)),
            message: match words.is_empty() {
                true => format!("the endpoint answered HTTP {status}"),
                false => format!("the endpoint answered HTTP {status}: {words}"),
            },
        }
    }

    /// Foreign text, shortened and without secrets.
    fn excerpt(&self, text: &str) -> String {
        self.redactor
            .text(text.trim())
            // By characters, so that the cut falls between two of them.
            .chars()
            .take(MAX_EXCERPT)
            .collect()
    }
}

/// Exponential backoff with jitter, so that waiting clients do not retry in step.
fn pause(n_retries: u32) -> Duration {
    // Bounded, because the multiplication panics on overflow.
    let doubled = FIRST_PAUSE * 2_u32.saturating_pow(n_retries.min(16));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // Good enough to spread retries, without a source of random numbers.
    let chance = now.map_or(0, |it| it.subsec_nanos()) % 250;
    let pause = doubled.min(LONGEST_PAUSE);
    pause.mul_f64(1.0 + f64::from(chance) / 1000.0)
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
