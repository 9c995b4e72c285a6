//! Error responses: a code for programs, a sentence for people.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use formats::registry;
use journal::Fault;
use model::error_chain;
use runner::{NotSettled, engines};
use serde::Serialize;

pub(crate) type Result<T, E = ApiError> = std::result::Result<T, E>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The request cannot mean anything.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    pub(crate) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    pub(crate) fn too_large(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, code, message)
    }

    pub(crate) fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
    }

    /// The same error with another code.
    pub(crate) fn code(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }
}

/// The code of an error, beside its response, for the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorCode(pub(crate) &'static str);

/// An error as clients see it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Error"))]
pub(crate) struct ErrorBody {
    error: ErrorFields,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
struct ErrorFields {
    /// A stable code for programs.
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let error = ErrorFields {
            code: self.code,
            message: self.message,
            hint: self.hint,
        };
        let mut response = reply(self.status, &ErrorBody { error });
        response.extensions_mut().insert(ErrorCode(self.code));
        // RFC 9110 requires a challenge with every 401.
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            let headers = response.headers_mut();
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// An answer in JSON.
pub(crate) fn reply(status: StatusCode, body: &impl Serialize) -> Response {
    let json = serde_json::to_vec(body).expect("answers are plain data with string keys");
    (status, [(header::CONTENT_TYPE, "application/json")], json).into_response()
}

impl From<hub::Error> for ApiError {
    fn from(err: hub::Error) -> Self {
        let message = error_chain(&err);
        let bad = |code| Self::bad(message.clone()).code(code);
        match err {
            hub::Error::NoSession(_) => no_session(message),
            hub::Error::Busy(_) => Self::conflict("session_busy", message)
                .hint("stop its run and take back its prompts, or wait for their end"),
            hub::Error::EmptyPrompt => bad("empty_prompt"),
            hub::Error::OtherEngine { .. } => bad("other_engine"),
            hub::Error::NotNamed(_) => Self::conflict("not_named_yet", message),
            hub::Error::Cwd { .. } => bad("bad_directory"),
            hub::Error::Recording { name, .. } => {
                bad("bad_recording").hint(engines::Recording::new(&name).offer())
            }
            hub::Error::Engine(engines::Error::BadValue { .. }) => bad("bad_request"),
            hub::Error::Engine(err) => Self {
                hint: err.hint(),
                ..bad("bad_engine")
            },
            hub::Error::Answer(NotSettled::BadInput) => bad("bad_input"),
            hub::Error::Answer(_) => Self::conflict("cannot_be_answered_so", message),
            hub::Error::Recorded => Self::conflict("recorded_ask", message),
            hub::Error::NoSuchCursor { .. } => bad("no_such_cursor"),
            hub::Error::Format(err) => bad("unknown_format").hint(formats_of(&err)),
            hub::Error::Stopped => Self::unavailable("stopping", "the server is stopping"),
            hub::Error::Journal(err) => err.into(),
        }
    }
}

impl From<registry::Error> for ApiError {
    fn from(err: registry::Error) -> Self {
        hub::Error::Format(err).into()
    }
}

impl From<engines::Error> for ApiError {
    fn from(err: engines::Error) -> Self {
        hub::Error::Engine(err).into()
    }
}

impl From<journal::Error> for ApiError {
    fn from(err: journal::Error) -> Self {
        let message = error_chain(&err);
        match err {
            journal::Error::NoSession { .. } => no_session(message),
            journal::Error::NoAsk { .. } => Self::not_found("no_such_ask", message),
            journal::Error::Answered { decision, .. } => {
                let how = decision.map_or("its answer is on its way".to_owned(), |it| {
                    format!("it was {}", decision_name(it))
                });
                let message = format!("this was answered before: {how}");
                Self::conflict("already_settled", message)
            }
            journal::Error::TooManyCommands { .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", message)
            }
            journal::Error::TooLarge { .. } => Self::too_large("too_large", message),
            journal::Error::Storage(Fault::Full) => {
                let hint = "make room; nothing has to be started again";
                Self::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", message).hint(hint)
            }
            journal::Error::Storage(Fault::Gone(_)) => Self::unavailable("journal_gone", message)
                .hint("start the server again; `linkspan doctor` says what is left"),
            journal::Error::Damaged { .. } => {
                let hint = "`linkspan doctor --repair` rescues what is whole";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", message).hint(hint)
            }
            journal::Error::Storage(_) => Self::unavailable("storage", message)
                .hint("see to the disk of the data directory; nothing has to be started again"),
            journal::Error::SessionExists { .. }
            | journal::Error::Held { .. }
            | journal::Error::Fenced { .. }
            | journal::Error::OutOfOrder { .. }
            | journal::Error::RunStarted { .. }
            | journal::Error::RunNotOpen { .. }
            | journal::Error::AskOpen { .. }
            | journal::Error::AskNotOpen { .. } => Self::conflict("conflict", message),
        }
    }
}

fn no_session(message: String) -> ApiError {
    let hint = "`GET /api/sessions` lists them; the whole id is needed";
    ApiError::not_found("no_such_session", message).hint(hint)
}

/// The formats or profiles that there are instead.
fn formats_of(err: &registry::Error) -> String {
    let formats = registry::FORMATS.iter();
    let (what, names): (_, Vec<&str>) = match err {
        registry::Error::UnknownProfile { format, .. } => {
            let of_format = formats.filter(|it| it.name == *format);
            let profiles = of_format.flat_map(|it| it.profiles.iter().map(|it| it.name));
            ("profiles", profiles.collect())
        }
        registry::Error::UnknownFormat(_)
        | registry::Error::CannotRead(_)
        | registry::Error::CannotWrite(_) => {
            let written = formats.filter(|it| it.writer.is_some());
            ("formats", written.map(|it| it.name).collect())
        }
    };
    match names.is_empty() {
        true => "it has no profiles: leave `profile` out".to_owned(),
        false => format!("{what}: {}", names.join(", ")),
    }
}

fn decision_name(decision: model::Decision) -> &'static str {
    match decision {
        model::Decision::Allowed => "allowed",
        model::Decision::AllowedAlways => "allowed for good",
        model::Decision::Denied => "denied",
        model::Decision::Withdrawn => "withdrawn by the agent",
        model::Decision::Lost => "lost with its run",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unwritable_store_is_reported_with_a_hint() {
        let response = |fault| {
            let error = ApiError::from(journal::Error::Storage(fault));
            (error.status.as_u16(), error.code, error.message, error.hint)
        };
        let again = "nothing has to be started again";
        assert_eq!(
            response(Fault::Full),
            (
                507,
                "disk_full",
                "the journal cannot be used: the disk is full".to_owned(),
                Some(format!("make room; {again}"))
            )
        );
        assert_eq!(
            response(Fault::ReadOnly),
            (
                503,
                "storage",
                "the journal cannot be used: the store is read-only".to_owned(),
                Some(format!("see to the disk of the data directory; {again}"))
            )
        );
    }
}
