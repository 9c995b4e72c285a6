//! The HTTP half: which request is answered from which lane, and how an answer becomes a response.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::dialects::{Call, Dialect, Method, Names, PATHS};
use crate::frames::Frames;
use crate::playback::{NextTurn, Playback};
use crate::request::Request;
use crate::scenario::{Answer, ApiError, Ending, Scenario, Turn};

/// Larger than any context window; a longer request is a mistake.
const MAX_BODY: usize = 64 << 20;

/// A server on its own thread, for tests of any kind. It stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stage: Playback,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens on a free port of 127.0.0.1 and is ready when this returns.
    pub fn start(scenario: Scenario) -> io::Result<Server> {
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        // `from_std` expects that.
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let listener = {
            // A listener belongs to the runtime that it is made in.
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let stage = Playback::new(scenario);
        let (stop, stopped) = oneshot::channel::<()>();
        let playing = stage.clone();
        let thread = thread::Builder::new()
            .name("scripted-model".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        _ = serve(listener, playing) => (),
                        _ = stopped => (),
                    }
                });
            })?;
        Ok(Server {
            address,
            stage,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The base address, without a slash at its end and without `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Begins another scenario, such as between two prompts.
    pub fn set(&self, scenario: Scenario) {
        self.stage.set(scenario);
    }

    /// All requests so far, in the order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.stage.requests()
    }

    /// Waits until `n` requests have arrived; see [`Playback::wait_for_requests`].
    pub fn wait_for_requests(&self, n: usize, at_most: Duration) -> Vec<Request> {
        self.stage.wait_for_requests(n, at_most)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // With the runtime all connections go, also those in the middle of a stream.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Serves a stage on a runtime of the caller's, until the future is dropped.
pub async fn serve(listener: TcpListener, stage: Playback) -> io::Result<()> {
    // A chunk is to leave when it is written. A socket that cannot do that is merely slower.
    let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
    // One handler for all paths: Gemini's hold the model, and unknown ones are recorded too.
    axum::serve(listener, Router::new().fallback(respond).with_state(stage)).await
}

async fn respond(State(stage): State<Playback>, request: HttpRequest) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_BODY).await else {
        let message = format!("the request is longer than {MAX_BODY} bytes");
        return refusal(
            StatusCode::PAYLOAD_TOO_LARGE,
            &json!({"error": {"message": message}}),
        );
    };
    let body = String::from_utf8_lossy(&body).into_owned();
    let asked = RequestKind::read(head.method.as_str(), head.uri.path(), &body);
    let mut request = Request::new(&head, body);
    if let RequestKind::Turn { lane, .. } = &asked {
        request.lane = Some(lane.clone());
    }
    // Before the answer: a test that has the answer finds the request.
    if let Err(err) = stage.record(request) {
        let message = format!("cannot write the request log: {err}");
        return refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            &json!({"error": {"message": message}}),
        );
    }
    match asked {
        RequestKind::Turn {
            dialect,
            call,
            lane,
        } => play(&stage, dialect, &call, &lane).await,
        RequestKind::Count(count) => whole(StatusCode::OK, &count),
        RequestKind::Wrong(status, error) => refusal(status, &error),
    }
}

/// What a request turned out to be.
enum RequestKind {
    Turn {
        dialect: Dialect,
        call: Call,
        lane: String,
    },
    Count(Value),
    Wrong(StatusCode, Value),
}

impl RequestKind {
    fn read(method: &str, path: &str, body: &str) -> RequestKind {
        let Some((dialect, asked)) = Dialect::of(path).filter(|_| method == "POST") else {
            let message = format!("nothing is served at {method} {path}; POST to one of {PATHS}");
            return RequestKind::Wrong(
                StatusCode::NOT_FOUND,
                json!({"error": {"message": message}}),
            );
        };
        let wrong = |message: &str| {
            let status = StatusCode::BAD_REQUEST;
            RequestKind::Wrong(status, dialect.error(status, None, message))
        };
        let json: Value = match serde_json::from_str(body) {
            Ok(json) => json,
            Err(err) => return wrong(&format!("the body is not JSON: {err}")),
        };
        let (model, stream) = match asked {
            Method::CountTokens => return RequestKind::Count(dialect.count(body)),
            Method::Generate { model, stream } => (model, stream),
        };
        match dialect.call(&json) {
            Ok(mut call) => {
                // Gemini has both in the path, and neither in the body.
                call.is_stream = stream.unwrap_or(call.is_stream);
                call.model = model.map_or(call.model, str::to_owned);
                let lane = lane(&call).to_owned();
                RequestKind::Turn {
                    dialect,
                    call,
                    lane,
                }
            }
            Err(message) => wrong(&message),
        }
    }
}

/// A prompt chooses its lane with `[[lane:NAME]]`; the newest one counts.
fn lane(call: &Call) -> &str {
    let marked = call.user_texts.iter().rev().find_map(|text| {
        let (_, rest) = text.rsplit_once("[[lane:")?;
        rest.split_once("]]").map(|(name, _)| name)
    });
    match marked {
        // Such a request repeats the prompt, with the mark in it.
        _ if call.is_title => Scenario::TITLE,
        Some(name) => name,
        None => Scenario::MAIN,
    }
}

async fn play(stage: &Playback, dialect: Dialect, call: &Call, lane: &str) -> Response {
    let cue = match stage.cue(lane) {
        Ok(cue) => cue,
        Err(message) => {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            return refusal(
                status,
                &dialect.error(status, Some("script_over"), &message),
            );
        }
    };
    let NextTurn {
        turn: Turn {
            answer,
            headers,
            delay,
        },
        number,
    } = cue;
    // Rendering costs no part of the delay, and a script without delays pays for no timer.
    let names = Names {
        lane,
        n_history: call.n_history,
        turn: number,
    };
    let response = match answer {
        Answer::Message(message) if call.is_stream => {
            let frames = dialect.stream(call, &message, &names);
            stream(Body::new(frames.play(message.pace)))
        }
        Answer::Message(message) => match &message.ending {
            Ending::Whole => whole(StatusCode::OK, &dialect.whole(call, &message, &names)),
            Ending::Fails { failure, .. } => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                let kind = failure.kind.as_deref();
                whole(status, &dialect.error(status, kind, &failure.message))
            }
            // Half of a JSON text is of no use: the connection closes after the head.
            Ending::Cut { .. } => Response::new(Body::new(Frames::dropped().play(message.pace))),
        },
        Answer::Error(ApiError {
            status,
            body: Some(body),
            ..
        }) => whole(status, &body),
        Answer::Error(ApiError {
            status,
            kind,
            message,
            body: None,
        }) => whole(status, &dialect.error(status, kind.as_deref(), &message)),
    };
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    (headers, response).into_response()
}

fn stream(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, body).into_response()
}

fn whole(status: StatusCode, json: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, json.to_string()).into_response()
}

/// An error of the script or of the request, which no retry can mend: the vendors' clients honour the header.
fn refusal(status: StatusCode, json: &Value) -> Response {
    ([("x-should-retry", "false")], whole(status, json)).into_response()
}
