//! What agents ask, and the answers.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use journal::WaitingAsk;
use model::SessionId;
use runner::Answer;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Json;
use crate::error::{ApiError, Result, reply};
use crate::state::App;

pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Response> {
    let asks = open(&app, None).await?;
    Ok(reply(StatusCode::OK, &json!({ "asks": asks })))
}

/// The asks that wait, of one session or of all.
pub(crate) async fn open(app: &App, session: Option<&SessionId<'_>>) -> Result<Vec<Value>> {
    let asks = app.hub.journal().asks().await?.into_iter();
    let asks = asks.filter(|it| session.is_none_or(|wanted| it.session == *wanted));
    Ok(asks.map(|it| view(app, &it)).collect())
}

/// These asks as clients see them.
pub(crate) fn views(app: &App, asks: &[WaitingAsk]) -> Vec<Value> {
    asks.iter().map(|it| view(app, it)).collect()
}

fn view(app: &App, ask: &WaitingAsk) -> Value {
    /// The event, of which only what was asked is told.
    #[derive(Deserialize)]
    struct AskEvent {
        data: Value,
    }
    let line = serde_json::from_slice::<AskEvent>(&ask.line);
    json!({
        "id": format!("{}:{}", ask.session, ask.seq),
        "session": ask.session.as_str(),
        "seq": ask.seq,
        "ask": ask.ask.as_str(),
        "run": ask.run.as_ref().map(|it| it.as_str()),
        "at": ask.at,
        "answered": ask.answered,
        "data": line.map(|it| it.data).unwrap_or_default(),
        "can_change": app.hub.takes_changes(&ask.session),
    })
}

/// An answer as clients send it.
#[derive(Debug, Deserialize)]
pub(crate) struct AskReply {
    pub(crate) decision: String,
    message: Option<String>,
    input: Option<Box<RawValue>>,
}

impl AskReply {
    fn answer(self) -> Result<Answer> {
        let input = self.input.map(|it| it.get().to_owned());
        let input = input.filter(|it| it != "null");
        match self.decision.as_str() {
            "allow" => Ok(Answer::Allow { input }),
            "allow_always" => Ok(Answer::AllowAlways { input }),
            "deny" => Ok(Answer::Deny {
                message: self
                    .message
                    .unwrap_or_else(|| "denied by the user".to_owned()),
            }),
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
    let none = || {
        let words = format!("nothing was asked under `{id}`");
        ApiError::new(StatusCode::NOT_FOUND, "no_such_ask", words)
    };
    let (session, seq) = id.rsplit_once(':').ok_or_else(none)?;
    let seq = seq.parse().map_err(|_| none())?;
    let answer = reply.answer()?;
    app.hub
        .settle(&SessionId::new(session), seq, answer)
        .await?;
    Ok(())
}
