//! What agents ask, and the answers.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use journal::WaitingAsk;
use model::{SessionId, Timestamp};
use runner::Answer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Json;
use crate::error::{ApiError, Result, reply};
#[cfg(test)]
use crate::schema_tests as schema;
use crate::state::App;

/// An ask as clients see it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "WaitingAsk"))]
pub(crate) struct AskView {
    /// By which it is answered.
    id: String,
    session: String,
    /// The number of its event.
    seq: u64,
    /// The agent's own id of it.
    ask: String,
    run: Option<String>,
    #[cfg_attr(test, schemars(with = "schema::Time"))]
    at: Timestamp,
    /// Its answer is on its way to the agent.
    answered: bool,
    /// As in the `ask.opened` event; a `deadline` says when it is answered by itself, and how.
    #[cfg_attr(test, schemars(with = "schema::AskRef"))]
    data: Value,
    /// Whether an answer may change the input.
    can_change: bool,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Asks"))]
pub(crate) struct AskList {
    asks: Vec<AskView>,
}

pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Response> {
    Ok(reply(StatusCode::OK, &open(&app).await?))
}

/// The asks of all sessions that wait.
pub(crate) async fn open(app: &App) -> Result<AskList> {
    let asks = app.hub.journal().asks(None).await?;
    let asks = asks.iter().map(|it| AskView::new(app, it)).collect();
    Ok(AskList { asks })
}

impl AskView {
    pub(crate) fn new(app: &App, ask: &WaitingAsk) -> Self {
        /// The event, of which only the ask itself is shown.
        #[derive(Deserialize)]
        struct AskEvent {
            data: Value,
        }
        let line = serde_json::from_slice::<AskEvent>(&ask.line);
        Self {
            id: format!("{}:{}", ask.session, ask.seq),
            session: ask.session.to_string(),
            seq: ask.seq,
            ask: ask.ask.to_string(),
            run: ask.run.as_ref().map(ToString::to_string),
            at: ask.at,
            answered: ask.answered,
            data: line.map(|it| it.data).unwrap_or_default(),
            can_change: app.hub.takes_changes(&ask.session),
        }
    }
}

/// An answer as clients send it.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Answer", deny_unknown_fields))]
pub(crate) struct AskReply {
    #[cfg_attr(test, schemars(with = "schema::AnswerName"))]
    pub(crate) decision: String,
    /// The reason that the agent gets with a denial.
    message: Option<String>,
    /// What runs instead of the input that the agent asked for.
    #[cfg_attr(test, schemars(with = "Option<schema::AnyFields>"))]
    input: Option<Box<RawValue>>,
}

impl AskReply {
    fn answer(self) -> Result<Answer> {
        let input = self.input.map(|it| it.get().to_owned());
        let input = input.filter(|it| it != "null");
        match self.decision.as_str() {
            "allow" => Ok(Answer::Allow { input }),
            "allow_always" => Ok(Answer::AllowAlways { input }),
            "deny" => {
                let message = self.message;
                let message = message.unwrap_or_else(|| "denied by the user".to_owned());
                Ok(Answer::Deny { message })
            }
            _ => Err(ApiError::bad(
                "a decision is `allow`, `allow_always` or `deny`",
            )),
        }
    }
}

pub(crate) async fn settle(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Json(answer): Json<AskReply>,
) -> Result<Response> {
    answer_ask(&app, &id, answer).await?;
    Ok(reply(StatusCode::OK, &json!({ "settled": id })))
}

/// Answers the ask of this id, which is its session's and the number of its event.
pub(crate) async fn answer_ask(app: &App, id: &str, reply: AskReply) -> Result<()> {
    let none = || ApiError::not_found("no_such_ask", format!("nothing was asked under `{id}`"));
    let (session, seq) = id.rsplit_once(':').ok_or_else(none)?;
    let seq = seq.parse().map_err(|_| none())?;
    let session = SessionId::new(session);
    Ok(app.hub.settle(&session, seq, reply.answer()?).await?)
}
