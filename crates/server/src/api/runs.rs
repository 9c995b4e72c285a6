//! Prompts: what a client may say about one, and what it needs the right for.

use std::path::Path;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use hub::{Submit, Submitted, Target};
use runner::RunOptions;
use runner::config::expand_home;
use runner::engines::{Selected, canonical_name, select};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Json;
use crate::config::MAX_PROMPT;
use crate::error::{ApiError, Result, reply};
use crate::fields::{Fields, Object};
use crate::repeats::{Answered, RequestKey};
#[cfg(test)]
use crate::schema_tests as schema;
use crate::state::App;
use crate::tokens::Caller;
use crate::{rights, roots};

/// Bytes of an id.
const MAX_ID: usize = 512;

/// A prompt as clients send it, under the names of the bridge too.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Prompt", extend("additionalProperties" = false)))]
pub(crate) struct SubmitFields {
    #[cfg_attr(test, schemars(flatten))]
    pub(crate) prompt: PromptFields,
    #[cfg_attr(test, schemars(flatten, with = "schema::RunOptionsFields"))]
    pub(crate) options: RunOptions,
}

/// The prompt itself, and where it goes.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PromptFields {
    #[serde(alias = "text")]
    #[cfg_attr(test, schemars(required, length(min = 1, max = MAX_PROMPT), regex(pattern = r"\S")))]
    pub(crate) prompt: Option<String>,
    #[serde(alias = "provider")]
    pub(crate) engine: Option<String>,
    /// Resume this session.
    #[serde(alias = "sessionId", alias = "session_id")]
    #[cfg_attr(test, schemars(length(min = 1, max = MAX_ID)))]
    pub(crate) session: Option<String>,
    /// Resume the agent's session of this id.
    #[cfg_attr(test, schemars(length(min = 1, max = MAX_ID)))]
    pub(crate) resume: Option<String>,
    /// Start with the events of this session.
    #[cfg_attr(test, schemars(length(min = 1, max = MAX_ID)))]
    pub(crate) fork: Option<String>,
    #[serde(alias = "workingDir", alias = "cd")]
    pub(crate) cwd: Option<String>,
}

impl Fields for SubmitFields {
    fn names() -> Vec<&'static str> {
        [PromptFields::names(), RunOptions::names()].concat()
    }

    fn read(object: Object<'_>) -> Result<Self> {
        Ok(Self {
            prompt: PromptFields::read(object)?,
            options: RunOptions::read(object)?,
        })
    }
}

/// The prompt was taken.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Submitted"))]
pub(crate) struct Accepted {
    session: String,
    /// Its first event names it.
    run: (),
    /// By which the prompt is removed from the queue.
    number: u64,
    /// 0 runs now.
    position: usize,
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
    // Without a key every request is a prompt of its own.
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
            // Bytes that are no text become the empty key, which `of_token` refuses.
            let key = key.to_str().unwrap_or_default();
            RequestKey::of_token(caller, key).map(Some)
        }
        (Some(_), Some(_)) => Err(ApiError::bad("there is more than one `Idempotency-Key`")),
    }
}

async fn accept(app: &App, caller: &Caller, fields: SubmitFields) -> Result<Value> {
    let submitted = take(app, caller, fields).await?;
    Ok(json!(Accepted {
        session: submitted.session.to_string(),
        run: (),
        number: submitted.number,
        position: submitted.position,
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

/// Refuses a reply to a recording, which would only be played again, as if it had answered.
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
            let (id, name) = (&session.id, recording.name());
            let message =
                format!("session `{id}` is a recording: it can be watched, but not replied to");
            let hint =
                format!("a prompt for the engine `replay:{name}` without a session plays it again");
            Err(ApiError::conflict("recording", message).hint(hint))
        }
        Ok(Selected::Agent(_) | Selected::Responses(_)) | Err(_) => Ok(()),
    }
}

impl SubmitFields {
    pub(crate) fn submit(self) -> Result<Submit> {
        let PromptFields {
            prompt,
            engine,
            session,
            resume,
            fork,
            cwd,
        } = self.prompt;
        let prompt = prompt.unwrap_or_default();
        if prompt.len() > MAX_PROMPT {
            let message = format!("a prompt may have {MAX_PROMPT} bytes");
            return Err(ApiError::too_large("prompt_too_long", message));
        }
        for id in [&session, &resume, &fork].into_iter().flatten() {
            check_id(id)?;
        }
        let target = match (session, resume, fork) {
            (None, None, None) => Target::New,
            (Some(it), None, None) => Target::Session(it),
            (None, Some(it), None) => Target::Native(it),
            (None, None, Some(it)) => Target::Fork(it),
            _ => {
                let message = "`session`, `resume` and `fork` exclude each other";
                return Err(ApiError::bad(message));
            }
        };
        Ok(Submit {
            target,
            engine: engine.map(|it| canonical_name(&it).to_owned()),
            cwd: cwd.map(|it| expand_home(Path::new(&it))),
            options: self.options,
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
