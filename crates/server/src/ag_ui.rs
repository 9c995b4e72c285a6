//! The AG-UI endpoint: `RunAgentInput` in, the events of one run out, for any engine.
//!
//! A client's thread is a session, so that its next run resumes it and other clients can see it. A
//! run belongs to the session, not to the connection: a client that reconnects with the same run or
//! with the last event's id gets what follows.

mod begin;
mod capabilities;
mod encoding;
mod library;
mod stream;
mod threads;
mod turns;

pub use library::{AgUiConfig, AgUiRouter, router};

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use formats::ag_ui::{InputError, PROTO_TYPE, RunAgentInput};
use futures_util::stream::unfold;
use hub::{Cursor, Hub, Submit};
use runner::config::Config;
use runner::engines::canonical_name;
use serde::Deserialize;
use serde_json::{Map, Value};

use self::encoding::Encoding;
use self::stream::RunStream;
use self::turns::Turns;
use crate::api::sessions::Aborted;
use crate::api::{Json, Params, live_response, read_body};
use crate::error::{ApiError, Result, reply};
use crate::metrics::Metrics;
use crate::state::App;
use crate::tokens::{Caller, Role};
use crate::{rights, roots};

/// Bytes of a request: messages may hold pictures.
const MAX_INPUT: usize = 32 << 20;

/// Bytes of a thread's id, as in `RunAgentInput`.
const MAX_ID: usize = 512;

/// Where a client says how an engine is run, in `forwardedProps`.
const SETTINGS: &str = "linkspan";

/// The same from a program between the client and the server, in JSON: it takes the place of the client's.
const SETTINGS_HEADER: &str = "linkspan-settings";

/// What the endpoint works with.
#[derive(Debug)]
pub(crate) struct AgUi {
    hub: Arc<Hub>,
    settings: Config,
    turns: Turns,
}

/// A request and its caller.
struct RunRequest {
    engine: String,
    input: RunAgentInput,
    params: RunParams,
    encoding: Encoding,
    /// The last event that the client has.
    after: Option<Cursor>,
    role: Role,
    /// The client sent engine settings without being allowed to.
    has_left_out: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct RunParams {
    /// A profile of the format, such as `thinking`.
    profile: Option<String>,
    /// `abort` ends the run when its client goes.
    on_disconnect: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Thread", deny_unknown_fields))]
pub(crate) struct AbortBody {
    #[cfg_attr(test, schemars(length(min = 1, max = MAX_ID)))]
    thread_id: String,
}

impl From<InputError> for ApiError {
    fn from(err: InputError) -> Self {
        Self::bad(err.to_string()).code("bad_input")
    }
}

pub(crate) async fn run_default(
    State(app): State<Arc<App>>,
    caller: Extension<Caller>,
    params: Params<RunParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let engine = app.hub.default_engine()?;
    run(State(app), caller, Path(engine), params, headers, body).await
}

pub(crate) async fn run(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(engine): Path<String>,
    Params(params): Params<RunParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let asked = RunRequest::read(&engine, caller.role, params, &headers, body).await?;
    let check = async |submit: Submit| {
        rights::check_submit(&app, &caller, &submit)?;
        roots::check_submit(&app, &caller, &submit).await?;
        Ok(submit)
    };
    let mut stream = app.ag_ui.begin(asked, check).await?;
    // A client that reconnects to its run has sent no new prompt.
    if stream.is_new {
        app.metrics.submitted();
    }
    stream.count_with(Metrics::follows(&app)?);
    // A stream may last for hours: a token that is revoked meanwhile must not read on.
    stream.until(Arc::clone(&app).no_longer_served(caller));
    Ok(respond(stream))
}

pub(crate) async fn abort(
    State(app): State<Arc<App>>,
    Path(engine): Path<String>,
    Json(body): Json<AbortBody>,
) -> Result<Response> {
    app.ag_ui.abort(&engine, &body.thread_id).await
}

pub(crate) async fn capabilities(
    State(app): State<Arc<App>>,
    Path(engine): Path<String>,
) -> Result<Response> {
    app.ag_ui.capabilities(&engine)
}

impl AgUi {
    pub(crate) fn new(hub: Arc<Hub>, settings: Config) -> Self {
        Self {
            hub,
            settings,
            turns: Turns::default(),
        }
    }

    async fn abort(&self, engine: &str, thread: &str) -> Result<Response> {
        let is_id = !thread.is_empty() && thread.len() <= MAX_ID;
        if !is_id || thread.contains(char::is_control) {
            let message =
                format!("`threadId` is not an id: 1 to {MAX_ID} bytes, no control characters");
            return Err(ApiError::bad(message).code("bad_input"));
        }
        let engine = canonical_name(engine);
        let aborted = match self.find_session(engine, thread).await?.1 {
            Some(session) => self.hub.abort(&session.id).await?,
            None => false,
        };
        Ok(reply(StatusCode::OK, &Aborted { aborted }))
    }

    fn capabilities(&self, engine: &str) -> Result<Response> {
        let capabilities = capabilities::of(canonical_name(engine), &self.settings)?;
        Ok(reply(StatusCode::OK, &capabilities))
    }
}

impl RunRequest {
    async fn read(
        engine: &str,
        role: Role,
        params: RunParams,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Self> {
        let after = match headers.get("last-event-id").map(HeaderValue::to_str) {
            None | Some(Ok("")) => None,
            Some(text) => {
                let cursor = text.ok().and_then(|it| it.parse().ok());
                let wrong = || ApiError::bad("`Last-Event-ID` is not the id of an event");
                Some(cursor.ok_or_else(wrong)?)
            }
        };
        // Refused, not ignored: with a misspelt `abort` the agent would outlive its client.
        match params.on_disconnect.as_deref() {
            None | Some("abort" | "detach") => (),
            Some(_) => return Err(ApiError::bad("`on_disconnect` is `abort` or `detach`")),
        }
        let settings = settings(headers)?;
        // Last, so that a wrong head is refused before a body of up to `MAX_INPUT` is read.
        let body = read_body(body, MAX_INPUT).await?;
        let mut asked = Self {
            engine: canonical_name(engine).to_owned(),
            input: RunAgentInput::from_json(&body)?,
            params,
            encoding: Encoding::of(headers),
            after,
            role,
            has_left_out: false,
        };
        if let Some(settings) = settings {
            asked.leave_out_settings();
            let props = &mut asked.input.thread.props;
            // A model has none of them, and an empty object says nothing to an agent.
            if !settings.is_empty() {
                props.insert(SETTINGS.to_owned(), settings.into());
            }
        }
        Ok(asked)
    }

    fn leave_out_settings(&mut self) {
        self.has_left_out = self.input.thread.props.remove(SETTINGS).is_some();
    }
}

/// Those of the header, if it is there.
fn settings(headers: &HeaderMap) -> Result<Option<Map<String, Value>>> {
    let Some(text) = headers.get(SETTINGS_HEADER) else {
        return Ok(None);
    };
    let settings = serde_json::from_slice(text.as_bytes());
    let wrong = |_| ApiError::bad(format!("`{SETTINGS_HEADER}` is not a JSON object"));
    settings.map(Some).map_err(wrong)
}

fn respond(stream: RunStream) -> Response {
    let media_type = match stream.encoding {
        Encoding::Sse => "text/event-stream",
        Encoding::Proto => PROTO_TYPE,
    };
    let pieces = unfold(stream, async |mut stream| {
        Some((stream.next().await?, stream))
    });
    live_response(media_type, pieces)
}
