//! One code for each kind of failure, whichever agent met it.
//!
//! Every agent has words of its own for a refused request: `rate_limit`, `too_many_requests`,
//! `LLMRateLimitError`, a status within a sentence. [`CODES`] says what they mean, in one table that
//! `docs/errors.md` repeats; [`settle`] applies it to the error of every run, and keeps the agent's
//! own word beside. A word that the table does not know is passed on as it is.

use std::borrow::Cow;

use model::RunError;

/// A kind of failure and how to know it.
#[derive(Debug)]
pub struct Code {
    pub name: &'static str,
    pub meaning: &'static str,
    /// What a program can do about it.
    pub advice: &'static str,
    /// HTTP statuses that mean it.
    pub statuses: &'static [u16],
    /// The agents' and providers' own codes for it.
    pub words: &'static [&'static str],
    /// Words of its messages where there is no code, in lower case.
    pub phrases: &'static [&'static str],
}

/// The order decides where more than one kind fits a sentence.
pub const CODES: &[Code] = &[
    Code {
        name: "context_too_long",
        meaning: "the conversation does not fit into the model's context",
        advice: "compact it or begin anew",
        statuses: &[413],
        words: &[
            "prompt_too_long",
            "context_length_exceeded",
            "context_window_exceeded",
            "ContextOverflowError",
            "LLMContextWindowExceedError",
            "request_too_large",
        ],
        phrases: &[
            "prompt is too long",
            "context length",
            "context window",
            "input is too long",
            "input token count",
        ],
    },
    Code {
        name: "billing",
        meaning: "the account has no credit left, or no right to this model",
        advice: "see the provider's account page",
        statuses: &[402],
        words: &["billing_error", "insufficient_quota", "payment_required"],
        phrases: &["credit balance", "exceeded your current quota", "billing"],
    },
    Code {
        name: "auth",
        meaning: "there is no login or key, or it is not accepted",
        advice: "log in, or set the key",
        statuses: &[401, 403],
        words: &[
            "authentication_failed",
            "authentication_required",
            "authentication_error",
            "permission_error",
            "oauth_org_not_allowed",
            "invalid_api_key",
            "unauthorized",
            "forbidden",
            "FatalAuthenticationError",
            "LLMAuthenticationError",
            "ProviderAuthError",
            "UNAUTHENTICATED",
            "PERMISSION_DENIED",
        ],
        phrases: &[
            "please run /login",
            "not logged in",
            "unauthorized",
            "invalid api key",
            "authentication required",
        ],
    },
    Code {
        name: "rate_limited",
        meaning: "too many requests or tokens in too short a time",
        advice: "wait and retry",
        statuses: &[429],
        words: &[
            "rate_limit",
            "rate_limit_error",
            "rate_limit_exceeded",
            "too_many_requests",
            "LLMRateLimitError",
            "RESOURCE_EXHAUSTED",
        ],
        phrases: &["rate limit", "too many requests"],
    },
    Code {
        name: "overloaded",
        meaning: "the provider cannot take more requests now",
        advice: "wait and retry",
        statuses: &[503, 529],
        words: &[
            "overloaded_error",
            "service_unavailable",
            "server_overloaded",
            "LLMServiceUnavailableError",
            "UNAVAILABLE",
        ],
        phrases: &["overloaded", "high demand", "service unavailable"],
    },
    Code {
        name: "not_found",
        meaning: "the model, the session or the address does not exist",
        advice: "name another",
        statuses: &[404],
        words: &["not_found_error", "model_not_found", "NOT_FOUND"],
        phrases: &["no conversation found", "no rollout found", "no session `"],
    },
    Code {
        name: "timeout",
        meaning: "no answer came in time",
        advice: "retry",
        statuses: &[408, 504],
        words: &[
            "timeout_error",
            "request_timeout",
            "LLMTimeoutError",
            "DEADLINE_EXCEEDED",
        ],
        phrases: &["timed out"],
    },
    Code {
        name: "network",
        meaning: "the provider cannot be reached, or the connection broke",
        advice: "see to the connection, then retry",
        statuses: &[],
        words: &[
            "unreachable",
            "connection_lost",
            "connection_error",
            "APIConnectionError",
        ],
        phrases: &[
            "econnrefused",
            "econnreset",
            "enotfound",
            "connection refused",
            "connection error",
            "connection closed",
            "cannot connect",
            "fetch failed",
            "error sending request",
            "socket hang up",
            "stream disconnected",
        ],
    },
    Code {
        name: "bad_request",
        meaning: "the provider does not take the request as it is",
        advice: "do not retry it unchanged",
        statuses: &[400, 405, 415, 422],
        words: &[
            "invalid_request",
            "invalid_request_error",
            "LLMBadRequestError",
            "BadRequestError",
            "INVALID_ARGUMENT",
        ],
        phrases: &["bad request"],
    },
    Code {
        name: "server_error",
        meaning: "the provider failed",
        advice: "retry",
        statuses: &[500, 502],
        words: &[],
        phrases: &["internal server error"],
    },
    Code {
        name: "crashed",
        meaning: "the agent's process ended before its run did",
        advice: "see the message: it holds the agent's last words",
        statuses: &[],
        words: &["process_exit"],
        phrases: &[],
    },
    Code {
        name: "failed",
        meaning: "the agent gives no reason for its failure",
        advice: "see the message",
        statuses: &[],
        words: &[],
        phrases: &[],
    },
];

/// Generic failure messages: other fields decide.
const VAGUE: &[(&str, &str)] = &[
    ("failed", "failed"),
    ("error", "failed"),
    ("unknown", "failed"),
    ("turn_failed", "failed"),
    ("request_failed", "failed"),
    ("error_during_execution", "failed"),
    ("APIError", "failed"),
    ("UnknownError", "failed"),
    ("LLMError", "failed"),
    ("server_error", "server_error"),
    ("api_error", "server_error"),
    ("internal_server_error", "server_error"),
    ("INTERNAL", "server_error"),
    ("model_error", "server_error"),
];

/// Words of the readers themselves, where the agent has none.
const OWN: &[&str] = &[
    "failed",
    "error",
    "turn_failed",
    "request_failed",
    "process_exit",
];

/// Gives an error the code of its kind; the agent's own word is kept.
pub fn settle(error: &mut RunError<'_>) {
    settle_with(error, None);
}

/// The same where the agent reported the HTTP status.
pub fn settle_with(error: &mut RunError<'_>, status: Option<u16>) {
    // Already settled, by a reader that knew the HTTP status: applied again the native word would
    // be lost.
    if error.native.is_some() {
        return;
    }
    let Some(code) = code_of(&error.code, status, &error.message.to_str()) else {
        return;
    };
    if code != error.code {
        let word = std::mem::replace(&mut error.code, Cow::Borrowed(code));
        // A reader's own stand-in says nothing about the agent: it is not kept as the agent's word.
        error.native = Some(word).filter(|it| !OWN.contains(&&**it));
    }
}

/// The code for what an agent calls `word`; nothing when the word has no rule.
fn code_of(word: &str, status: Option<u16>, message: &str) -> Option<&'static str> {
    let vague = VAGUE.iter().find(|it| it.0 == word).map(|it| it.1);
    let in_word = word.strip_prefix("http_").and_then(|it| it.parse().ok());
    let exact = CODES
        .iter()
        // `failed` and `server_error` are codes and vague words at once: the message may say more.
        .find(|it| it.name == word && vague.is_none() || it.words.contains(&word));
    // An unknown word is the agent's own code, which programs may rely on: it is left alone.
    if exact.is_none() && vague.is_none() && in_word.is_none() {
        return None;
    }
    let text = message.to_ascii_lowercase();
    let context = &CODES[0];
    // Providers have no status for it: they call it a bad request.
    if exact.is_none_or(|it| it.name == "bad_request") && matches_text(context, &text) {
        return Some(context.name);
    }
    if let Some(exact) = exact {
        return Some(exact.name);
    }
    // A reported status is certain; one in a sentence is only likely.
    let status = status.or(in_word).or_else(|| status_in(&text));
    let by_status = |status: u16| CODES.iter().find(|it| it.statuses.contains(&status));
    let found = status
        .and_then(by_status)
        // A provider's own code within the message is more exact than phrases of its prose.
        .or_else(|| CODES.iter().find(|it| is_quoted(it, message)))
        .or_else(|| CODES.iter().find(|it| matches_text(it, &text)));
    match (found, status) {
        (Some(it), _) => Some(it.name),
        // Statuses without a row still say whose fault it was.
        (None, Some(500..)) => Some("server_error"),
        (None, Some(400..)) => Some("bad_request"),
        (None, _) => vague,
    }
}

fn matches_text(code: &Code, text: &str) -> bool {
    code.phrases.iter().any(|it| text.contains(it))
}

/// The answer of a provider, as JSON within a sentence.
fn is_quoted(code: &Code, message: &str) -> bool {
    let quoted = |word: &&str| {
        message.match_indices(*word).any(|(at, _)| {
            message[..at].ends_with('"') && message[at + word.len()..].starts_with('"')
        })
    };
    // Only in quotes: in prose, `forbidden` is a word like any other.
    code.words.iter().any(quoted)
}

/// An HTTP status within a sentence: three digits behind a word that announces them.
fn status_in(text: &str) -> Option<u16> {
    let announced = [
        "error: ",
        "error ",
        "status ",
        "status code ",
        "status: ",
        "failed: ",
        "http ",
        "\"code\":",
        "\"code\": ",
    ];
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    (0..bytes.len()).find_map(|at| {
        // Longer numbers are ports or counts of tokens, not statuses.
        let is_number = is_digit(at) && is_digit(at + 1) && is_digit(at + 2) && !is_digit(at + 3);
        if !is_number || !text.is_char_boundary(at) {
            return None;
        }
        let before = &text[..at];
        let is_announced = at == 0 || announced.iter().any(|it| before.ends_with(it));
        let status = text[at..at + 3].parse().ok();
        status.filter(|it| is_announced && (400..600).contains(it))
    })
}

/// The table as Markdown, for `docs/errors.md`.
pub fn table() -> String {
    let mut table = "| `code` | Means | What to do | HTTP | The agents' own words |\n".to_owned();
    table.push_str("| --- | --- | --- | --- | --- |\n");
    for code in CODES {
        let statuses: Vec<_> = code.statuses.iter().map(u16::to_string).collect();
        let vague = VAGUE.iter().filter(|it| it.1 == code.name).map(|it| it.0);
        let words = code.words.iter().copied().chain(vague);
        let words: Vec<_> = words
            .filter(|it| *it != code.name)
            .map(|it| format!("`{it}`"))
            .collect();
        table.push_str(&format!(
            "| `{}` | {} | {} | {} | {} |\n",
            code.name,
            code.meaning,
            code.advice,
            statuses.join(", "),
            words.join(", "),
        ));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Text;

    fn settled(word: &str, message: &str) -> (String, Option<String>) {
        let mut error = RunError::new(word.to_owned(), Text::new(message.to_owned()));
        settle(&mut error);
        let native = error.native.map(Cow::into_owned);
        (error.code.into_owned(), native)
    }

    #[test]
    fn one_kind_has_one_code_for_every_agent() {
        let all = [
            (
                "unknown",
                "API Error: 400 messages: bad request",
                "bad_request",
            ),
            (
                "turn_failed",
                r#"{"error": {"type": "invalid_request_error"}}"#,
                "bad_request",
            ),
            (
                "failed",
                r#"[API Error: {"error":{"code":400,"status":"X"}}]"#,
                "bad_request",
            ),
            (
                "turn_failed",
                "unexpected status 401 Unauthorized: no auth",
                "auth",
            ),
            ("authentication_failed", "Invalid API key", "auth"),
            ("server_error", "API Error: 529 Overloaded.", "overloaded"),
            (
                "server_error",
                "API Error: 500 Internal server error.",
                "server_error",
            ),
            (
                "server_error",
                "API Error: Connection refused (ECONNREFUSED)",
                "network",
            ),
            (
                "turn_failed",
                "We’re currently experiencing high demand",
                "overloaded",
            ),
            (
                "turn_failed",
                "stream disconnected before completion",
                "network",
            ),
            (
                "invalid_request",
                "Prompt is too long · 250000 tokens",
                "context_too_long",
            ),
            ("LLMRateLimitError", "429 Too Many Requests", "rate_limited"),
            ("error", "OpenResponses request failed: 401 {}", "auth"),
            ("http_503", "the endpoint answered HTTP 503", "overloaded"),
            ("http_418", "the endpoint answered HTTP 418", "bad_request"),
            (
                "insufficient_quota",
                "You exceeded your current quota",
                "billing",
            ),
            ("process_exit", "claude failed (rc=7)", "crashed"),
            ("error", "boom", "failed"),
        ];
        for (word, message, code) in all {
            assert_eq!(settled(word, message).0, code, "{word}: {message}");
        }
    }

    #[test]
    fn the_agents_own_code_is_kept() {
        let own = Some("rate_limit".to_owned());
        assert_eq!(
            settled("rate_limit", "later"),
            ("rate_limited".to_owned(), own)
        );
        assert_eq!(
            settled("rate_limited", "later"),
            ("rate_limited".to_owned(), None)
        );
        assert_eq!(
            settled("process_exit", "gone"),
            ("crashed".to_owned(), None)
        );
    }

    #[test]
    fn an_unknown_error_code_is_passed_on() {
        for word in [
            "wrong_session",
            "missing_end",
            "aborted",
            "error_max_turns",
            "x",
        ] {
            let text = "status 429 too many requests";
            assert_eq!(settled(word, text), (word.to_owned(), None));
        }
    }

    #[test]
    fn settling_twice_changes_nothing() {
        for code in CODES {
            assert_eq!(settled(code.name, "x"), (code.name.to_owned(), None));
        }
    }
}
