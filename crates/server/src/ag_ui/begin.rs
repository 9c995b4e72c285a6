//! What a request leads to: a new run, one that is known already, an answer to an ask, or the past of a
//! thread.

use std::sync::Arc;

use axum::http::StatusCode;
use formats::ag_ui::{Resume, ResumeStatus, RunAgentInput};
use formats::{History, WriterConfig, registry};
use hub::{Submit, Target};
use journal::Session;
use model::{ClientRun, MessageContent, SessionId, ThreadMessage, ToolAnswer};
use responses::Conversation;
use runner::Answer;
use runner::engines::{Selected, select};
use serde_json::Value;

use super::stream::RunStream;
use super::{AgUi, RunRequest, SETTINGS};
use crate::api::runs::SubmitFields;
use crate::error::{ApiError, Result};
use crate::fields;
use crate::tokens::Role;

/// Runs that are looked at for the one that has asked.
const RECENT: u32 = 32;

impl AgUi {
    /// What the caller may not have is refused by `check`.
    pub(super) async fn begin<F: Future<Output = Result<Submit>>>(
        self: &Arc<Self>,
        asked: RunRequest,
        check: impl FnOnce(Submit) -> F,
    ) -> Result<RunStream> {
        let selected = select(&asked.engine, &self.settings)?;
        let endpoint = match &selected {
            Selected::Responses(endpoint) => Some(endpoint.name.as_str()),
            Selected::Agent(_) | Selected::Replay(_) => None,
        };
        let mut profile = asked.params.profile.clone();
        profile = profile.or_else(|| Some(self.settings.endpoint_profile(endpoint?)?.to_owned()));
        // A stream's writer is made without an error, so an unknown profile is refused here.
        check_profile(profile.as_deref())?;
        let input = &asked.input;
        // Held until the prompt is queued: two concurrent requests for the same run are one run.
        let _turn = self.turns.take(&asked.engine, &input.thread_id).await;
        let (session, found) = self.find_session(&asked.engine, &input.thread_id).await?;
        let mut stream = RunStream::new(self, &asked, session.clone(), profile);
        if asked.has_left_out {
            let words = "`forwardedProps.linkspan` is not taken here";
            stream.warn("settings_left_out", words);
        }
        if endpoint.is_some_and(|it| self.settings.endpoint_sends_state(it)) {
            match &input.state {
                None => stream.send_state(false),
                Some(Value::Object(_)) => stream.send_state(true),
                // There is no place for it in there, and what is there is the application's.
                Some(_) => (),
            }
        }
        if !input.resume.is_empty() {
            return self.resume(&asked, found, stream).await;
        }
        if let Some(found) = found {
            // The queue first: a prompt leaves it with the event that its run begins with.
            if let Some(number) = self.find_queued(&session, &input.run_id).await? {
                stream.wait_for(number, found.head).await?;
                return Ok(stream);
            }
            if let Some(run) = self.find_run(&session, &input.run_id).await? {
                stream.follow_own(&run, 0).await?;
                return Ok(stream);
            }
            // A late client cannot answer an ask before it has seen it.
            if input.thread.messages.is_empty() {
                self.join(&found, &mut stream).await?;
                return Ok(stream);
            }
            if self.is_asking(&session).await? {
                stream.refuse(
                    "interrupt_open",
                    "the agent waits for an answer: send it with `resume`",
                );
                return Ok(stream);
            }
        }
        let submit = submit(&asked, &session, &selected, &mut stream)?;
        // Only a new prompt is checked: following a run needs no right beyond the route's.
        let submit = check(submit).await?;
        // Read before the prompt is queued: its run may have begun by the time `submit` returns.
        let head = self.hub.journal().find_session(&session).await?;
        let head = head.map_or(0, |it| it.head);
        let submitted = self.hub.submit(submit).await?;
        stream.is_new = true;
        stream.wait_for(submitted.number, head).await?;
        Ok(stream)
    }

    async fn is_asking(&self, session: &SessionId<'_>) -> Result<bool> {
        for ask in self.hub.journal().asks(None).await? {
            if ask.session == *session && self.hub.is_waiting(session, ask.seq).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends the thread to a client that does not know it: the past at once, an open run as it happens.
    async fn join(&self, found: &Session, stream: &mut RunStream) -> Result<()> {
        let runs = self.hub.journal().runs(&found.id, None, 1).await?;
        let open = runs.into_iter().find(|it| it.end.is_none());
        // The snapshot ends before an open run: its events follow, and would come twice.
        let head = open.as_ref().map_or(found.head, |it| it.first - 1);
        let history = self.hub.history(&found.id, head).await?;
        stream.snapshot(&history.messages);
        match open {
            Some(run) => stream.follow_run(&run, 0).await,
            None => {
                // Nothing runs, but every AG-UI stream needs its one end.
                stream.finish();
                Ok(())
            }
        }
    }

    /// Gives the agent its answers, and continues the run behind its asks.
    async fn resume(
        &self,
        asked: &RunRequest,
        found: Option<Session>,
        mut stream: RunStream,
    ) -> Result<RunStream> {
        // The route asks for `prompt` alone: only the body says whether an ask is answered.
        if asked.role < Role::Approve {
            return Err(ApiError::forbidden(
                "a token for `approve` is needed to answer what an agent asks",
            ));
        }
        let session = found.map(|it| it.id);
        let mut answers = Vec::new();
        // Every id is read before the first answer is given: a wrong one must not leave half of
        // them answered.
        for resume in &asked.input.resume {
            let seq = session.as_ref().and_then(|it| seq_of(resume, it));
            let Some(seq) = seq else {
                let id = &resume.interrupt_id;
                stream.refuse(
                    "no_such_interrupt",
                    &format!("nothing was asked under `{id}` in this thread"),
                );
                return Ok(stream);
            };
            answers.push((seq, answer(resume)));
        }
        let first = answers.iter().map(|it| it.0).min();
        // Cannot happen: `resume` is not empty here, and each entry has found its session.
        let (Some(session), Some(first)) = (session, first) else {
            return Ok(stream);
        };
        let runs = self.hub.journal().runs(&session, None, RECENT).await?;
        // The newest run comes first, so this is the one that the ask belongs to.
        let Some(run) = runs.into_iter().find(|it| it.first < first) else {
            stream.refuse("no_such_interrupt", "nothing was asked there");
            return Ok(stream);
        };
        for (seq, answer) in answers {
            match self.hub.settle(&session, seq, answer).await {
                // The same answer again is as good as the first one.
                Ok(()) | Err(hub::Error::Journal(journal::Error::Answered { .. })) => (),
                Err(hub::Error::Journal(journal::Error::NoAsk { .. })) => {
                    stream.refuse("no_such_interrupt", "nothing was asked there");
                    return Ok(stream);
                }
                Err(err) => return Err(err.into()),
            }
        }
        // Behind the first ask: the client has the run up to the interrupt there.
        stream.follow_own(&run, first).await?;
        Ok(stream)
    }
}

fn check_profile(profile: Option<&str>) -> Result<()> {
    let config = WriterConfig {
        profile: profile.map(str::to_owned),
        ..WriterConfig::default()
    };
    registry::writer("ag-ui", &config)?;
    Ok(())
}

/// The event that has asked: interrupts are called by their session and its number.
fn seq_of(resume: &Resume, session: &SessionId<'_>) -> Option<u64> {
    let (of, seq) = resume.interrupt_id.rsplit_once(':')?;
    (of == session.as_str()).then(|| seq.parse().ok())?
}

/// The answer to an ask. What is not an approval is a denial.
fn answer(resume: &Resume) -> Answer {
    let nothing = Value::Null;
    let payload = match resume.status {
        ResumeStatus::Resolved => resume.payload.as_ref().unwrap_or(&nothing),
        ResumeStatus::Cancelled => {
            return Answer::Deny {
                message: "the user walked away".to_owned(),
            };
        }
    };
    let input = payload.get("input").filter(|it| !it.is_null());
    let is_yes = match payload.get("approved") {
        Some(approved) => approved == true,
        None => payload == true || input.is_some(),
    };
    let input = input.map(Value::to_string);
    match (is_yes, payload.get("always") == Some(&Value::Bool(true))) {
        (true, true) => Answer::AllowAlways { input },
        (true, false) => Answer::Allow { input },
        (false, _) => {
            let message = payload.get("message").and_then(Value::as_str);
            Answer::Deny {
                message: message.unwrap_or("denied by the user").to_owned(),
            }
        }
    }
}

/// The prompt of a request.
fn submit(
    asked: &RunRequest,
    session: &SessionId<'_>,
    selected: &Selected,
    stream: &mut RunStream,
) -> Result<Submit> {
    let input = &asked.input;
    let mut fields = settings(input)?;
    fields.prompt.engine = Some(asked.engine.clone());
    let model = input.thread.props.get("model").and_then(Value::as_str);
    let mut thread = None;
    match selected {
        Selected::Responses(endpoint) => {
            let conversation = Conversation::of_client(
                session.as_str(),
                input.thread.clone(),
                &History::default(),
            );
            conversation.check(endpoint).map_err(|err| {
                ApiError::new(StatusCode::BAD_REQUEST, "bad_input", err.to_string())
            })?;
            if input.thread.messages.is_empty() {
                return Err(no_prompt("`messages` is empty"));
            }
            fields.prompt.prompt = Some(spoken(input.thread.messages.last()));
            thread = Some(input.thread.clone());
        }
        Selected::Agent(_) | Selected::Replay(_) => {
            fields.prompt.prompt = Some(prompt(input, stream)?);
            fields.options.model = fields.options.model.or(model.map(str::to_owned));
        }
    }
    Ok(Submit {
        target: Target::Own(session.to_string()),
        client: Some(ClientRun {
            id: input.run_id.clone(),
            n_messages: input.thread.messages.len(),
            digest: responses::digest(&input.thread.messages),
            answers: ToolAnswer::of(&input.thread.messages),
        }),
        thread,
        ..fields.submit()?
    })
}

/// What the client says about how the engine is run.
fn settings(input: &RunAgentInput) -> Result<SubmitFields> {
    let refuse = |err: ApiError| ApiError {
        code: "bad_input",
        message: format!("`forwardedProps.linkspan`: {}", err.message),
        ..err
    };
    let fields: SubmitFields = match input.thread.props.get(SETTINGS) {
        None => return Ok(SubmitFields::default()),
        Some(Value::Object(own)) => fields::from_map(own).map_err(refuse)?,
        Some(_) => return Err(refuse(ApiError::bad("it is not an object"))),
    };
    // What the request itself says; two answers to one question would hide a mistake.
    let prompt = &fields.prompt;
    let elsewhere = [
        ("prompt", prompt.prompt.is_some(), "in `messages`"),
        ("engine", prompt.engine.is_some(), "in the path"),
        ("session", prompt.session.is_some(), "with `threadId`"),
        ("resume", prompt.resume.is_some(), "with `threadId`"),
        ("fork", prompt.fork.is_some(), "with `threadId`"),
    ];
    match elsewhere.into_iter().find(|it| it.1) {
        None => Ok(fields),
        Some((name, _, place)) => Err(refuse(ApiError::bad(format!(
            "`{name}` is not taken here; an AG-UI client says it {place}"
        )))),
    }
}

fn no_prompt(message: &str) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "bad_input", message)
}

/// The text of the last message, if it is the user's.
fn spoken(last: Option<&ThreadMessage>) -> String {
    match last.map(|it| &it.content) {
        Some(MessageContent::User(content)) => content.text(),
        // A thread may end with the answer of a client's tool, which is no prompt.
        _ => String::new(),
    }
}

/// The prompt for an agent, which has tools and a memory of its own: the last message of the user, and the
/// context of the application.
fn prompt(input: &RunAgentInput, stream: &mut RunStream) -> Result<String> {
    let n = input.thread.messages.len();
    let last = input.thread.messages.last().map(|it| &it.content);
    let Some(MessageContent::User(content)) = last else {
        let field = n
            .checked_sub(1)
            .map_or("messages".to_owned(), |it| format!("messages[{it}]"));
        return Err(no_prompt(&format!(
            "`{field}` is not the user's: there is no prompt"
        )));
    };
    let mut prompt = content.text();
    if prompt.trim().is_empty() {
        return Err(no_prompt(&format!(
            "`messages[{}].content` has no words",
            n - 1
        )));
    }
    if content.has_media() {
        stream.warn("media_left_out", "this agent takes words alone");
    }
    if !input.thread.tools.is_empty() {
        stream.warn(
            "tools_left_out",
            "this agent has tools of its own, and takes no others",
        );
    }
    for context in &input.thread.context {
        prompt.push_str(&format!("\n\n{}:\n{}", context.description, context.value));
    }
    Ok(prompt)
}
