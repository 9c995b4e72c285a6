//! Prompts: what a client may say about one, and what it needs the right for.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use hub::{Submit, Submitted, Target};
use runner::engines::{Selected, select};
use runner::{AskDefault, Mode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Json;
use crate::config::MAX_PROMPT;
use crate::error::{ApiError, Result, reply};
use crate::repeats::{Answered, RequestKey};
use crate::state::App;
use crate::tokens::Caller;
use crate::{home, rights, roots};

/// Bytes of an id.
const MAX_ID: usize = 512;

/// A prompt as clients send it, under the names of the bridge too.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubmitFields {
    #[serde(alias = "text")]
    pub(crate) prompt: Option<String>,
    #[serde(alias = "provider")]
    pub(crate) engine: Option<String>,
    #[serde(alias = "sessionId", alias = "session_id")]
    pub(crate) session: Option<String>,
    pub(crate) resume: Option<String>,
    pub(crate) fork: Option<String>,
    #[serde(alias = "workingDir", alias = "cd")]
    pub(crate) cwd: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) permissions: Option<String>,
    #[serde(default, alias = "allowedTools", alias = "allowed_tools")]
    pub(crate) allow: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) deny: Vec<String>,
    #[serde(alias = "output_style")]
    pub(crate) output_style: Option<String>,
    pub(crate) verbosity: Option<String>,
    pub(crate) speed: Option<f64>,
    /// In seconds; 0 waits for ever.
    #[serde(alias = "ask_timeout")]
    pub(crate) ask_timeout: Option<f64>,
    #[serde(alias = "ask_default")]
    pub(crate) ask_default: Option<String>,
}

/// By which a client says that a prompt is a repeat, and hears that it was one.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";
const REPLAYED: &str = "idempotent-replayed";

pub(crate) async fn submit(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(fields): Json<SubmitFields>,
) -> Result<Response> {
    let Some(key) = request_key(&caller, &headers)? else {
        let answer = accept(&app, &caller, fields).await?;
        return Ok(reply(StatusCode::ACCEPTED, &answer));
    };
    let body = fields.clone();
    let work = {
        let app = Arc::clone(&app);
        async move { accept(&app, &caller, fields).await }
    };
    let Answered { answer, is_repeat } = app.repeats.once(key, &body, work).await?;
    let mut response = reply(StatusCode::ACCEPTED, &answer);
    if is_repeat {
        let yes = HeaderValue::from_static("true");
        response.headers_mut().insert(REPLAYED, yes);
    }
    Ok(response)
}

fn request_key(caller: &Caller, headers: &HeaderMap) -> Result<Option<RequestKey>> {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY).iter();
    match (keys.next(), keys.next()) {
        (None, _) => Ok(None),
        (Some(key), None) => {
            let key = key.to_str().unwrap_or_default();
            RequestKey::of_token(caller, key).map(Some)
        }
        (Some(_), Some(_)) => Err(ApiError::bad("there is more than one `Idempotency-Key`")),
    }
}

async fn accept(app: &App, caller: &Caller, fields: SubmitFields) -> Result<Value> {
    let submitted = take(app, caller, fields).await?;
    Ok(json!({
        "session": submitted.session.as_str(),
        "run": null,
        "number": submitted.number,
        "position": submitted.position,
    }))
}

/// Gives a prompt to the hub, if the caller may.
pub(crate) async fn take(app: &App, caller: &Caller, fields: SubmitFields) -> Result<Submitted> {
    let submit = fields.submit()?;
    rights::check_submit(app, caller, &submit)?;
    roots::check_submit(app, caller, &submit).await?;
    check_recording(app, &submit).await?;
    let submitted = app.hub.submit(submit).await?;
    app.metrics.submitted();
    Ok(submitted)
}

/// Refuses a reply to a recording: it would be played once more, as if it had answered.
async fn check_recording(app: &App, submit: &Submit) -> Result<()> {
    let (Target::Session(id) | Target::Native(id) | Target::Fork(id) | Target::Own(id)) =
        &submit.target
    else {
        return Ok(());
    };
    let session = match app.hub.find(id).await {
        Ok(session) => session,
        // The hub reports the error.
        Err(hub::Error::NoSession(_)) => return Ok(()),
        Err(err) => return Err(err.into()),
    };
    // The agent that was recorded may have a session of the same name.
    let is_same = |it: &String| *it == session.engine;
    if !submit.engine.as_ref().is_none_or(is_same) {
        return Ok(());
    }
    match select(&session.engine, app.engines.settings()) {
        Ok(Selected::Replay(recording)) => {
            let words = format!(
                "session `{}` is a recording: it can be watched, but not replied to",
                session.id
            );
            let hint = format!(
                "a prompt for the engine `replay:{}` without a session plays it again",
                recording.name()
            );
            Err(ApiError::new(StatusCode::CONFLICT, "recording", words).hint(hint))
        }
        Ok(Selected::Agent(_) | Selected::Responses(_)) | Err(_) => Ok(()),
    }
}

impl SubmitFields {
    pub(crate) fn submit(self) -> Result<Submit> {
        let prompt = self.prompt.unwrap_or_default();
        if prompt.len() > MAX_PROMPT {
            let words = format!("a prompt may have {MAX_PROMPT} bytes");
            return Err(ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "prompt_too_long",
                words,
            ));
        }
        let permissions = match self.permissions.as_deref() {
            None => None,
            Some(word) => Some(Mode::parse(word).ok_or_else(|| {
                let names = Mode::names().join("`, `");
                ApiError::bad(format!("permissions are one of `{names}`"))
            })?),
        };
        if self.speed.is_some_and(|it| !(it.is_finite() && it >= 0.0)) {
            return Err(ApiError::bad("a speed is a number such as 2 or 0.5"));
        }
        let ask_timeout = self
            .ask_timeout
            .map(Duration::try_from_secs_f64)
            .transpose();
        let ask_timeout =
            ask_timeout.map_err(|_| ApiError::bad("an `askTimeout` is a number of seconds"))?;
        let ask_default = match self.ask_default.as_deref() {
            None => None,
            Some(name) => Some(
                AskDefault::find(name)
                    .ok_or_else(|| ApiError::bad("an `askDefault` is `deny` or `allow`"))?,
            ),
        };
        for id in [&self.session, &self.resume, &self.fork]
            .into_iter()
            .flatten()
        {
            check_id(id)?;
        }
        let target = match (self.session, self.resume, self.fork) {
            (None, None, None) => Target::New,
            (Some(it), None, None) => Target::Session(it),
            (None, Some(it), None) => Target::Native(it),
            (None, None, Some(it)) => Target::Fork(it),
            _ => {
                return Err(ApiError::bad(
                    "`session`, `resume` and `fork` exclude each other",
                ));
            }
        };
        Ok(Submit {
            target,
            engine: self.engine.map(|it| engine_name(&it).to_owned()),
            cwd: self.cwd.map(|it| home::expanded(&it)),
            model: self.model,
            permissions,
            allow: self.allow,
            deny: self.deny,
            output_style: self.output_style,
            verbosity: self.verbosity,
            // As in `linkspan run --speed`: 0 does not wait at all.
            speed: self.speed.filter(|it| *it > 0.0),
            ask_timeout,
            ask_default,
            ..Submit::new(prompt)
        })
    }
}

/// An id is opaque, but never a flag of the program it is given to.
fn check_id(id: &str) -> Result<()> {
    let is_fine = !id.is_empty() && id.len() <= MAX_ID && !id.starts_with('-');
    match is_fine && !id.contains(char::is_control) {
        true => Ok(()),
        false => Err(ApiError::bad("this is not the id of a session")),
    }
}

/// The name of an engine, however a client of the bridge calls it.
pub(crate) fn engine_name(name: &str) -> &str {
    match name {
        "claude_code" | "claude-code" => "claude",
        other => other,
    }
}
