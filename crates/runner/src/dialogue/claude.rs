//! Claude Code with `--input-format stream-json`: prompts as messages, the rest as control requests.
//!
//! Facts from recordings of Claude Code 2.1.325. `initialize` is optional, and every other request works without
//! it; it is sent where there is no prompt yet, because the program is silent otherwise, and to learn what it
//! offers. Messages that are sent during a turn would be merged into one, so a prompt waits for the result of
//! the one before it.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Dialogue, NotSettled, Offer, Offers, Outbox, SlashCommand, in_one_line, may_hold};
use crate::request::{Answer, Image, Mode, Prompt};

#[derive(Debug, Default)]
pub struct Claude {
    n_requests: u64,
    /// Requests whose failure is reported to the user: purpose by id.
    settings: HashMap<String, String>,
    /// The open asks by id, with the permissions that the agent suggests.
    asks: HashMap<String, Option<Box<RawValue>>>,
    has_run: bool,
    waiting: VecDeque<Prompt>,
    /// There is no prompt to begin with.
    is_early: bool,
    offers: Offers,
}

#[derive(Deserialize)]
struct InboundLine<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    request_id: Option<Cow<'a, str>>,
    request: Option<ControlRequest<'a>>,
    response: Option<ControlResponse<'a>>,
    parent_tool_use_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ControlRequest<'a> {
    #[serde(borrow)]
    subtype: Cow<'a, str>,
    permission_suggestions: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ControlResponse<'a> {
    #[serde(borrow)]
    request_id: Cow<'a, str>,
    error: Option<Cow<'a, str>>,
    response: Option<&'a RawValue>,
}

/// The answer to `initialize`, as far as it is needed.
#[derive(Default, Deserialize)]
#[serde(default)]
struct InitializeResult {
    commands: Vec<CommandInfo>,
    models: Vec<ModelChoice>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CommandInfo {
    name: String,
    description: String,
    argument_hint: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ModelChoice {
    value: String,
    display_name: String,
    description: Option<String>,
}

/// The answer to a permission request. It is no [`Value`], because an input may be many megabytes.
#[derive(Serialize)]
struct PermissionResponse<'a> {
    r#type: &'static str,
    response: ControlSuccess<'a>,
}

#[derive(Serialize)]
struct ControlSuccess<'a> {
    subtype: &'static str,
    request_id: &'a str,
    response: Behavior<'a>,
}

#[derive(Serialize)]
#[serde(tag = "behavior", rename_all = "snake_case")]
enum Behavior<'a> {
    #[serde(rename_all = "camelCase")]
    Allow {
        updated_input: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        updated_permissions: Option<Vec<Suggestion>>,
    },
    Deny {
        message: &'a str,
    },
}

/// Claude Code takes a text, or blocks with the images before it.
fn content(prompt: &Prompt) -> Value {
    if prompt.images.is_empty() {
        return json!(prompt.text);
    }
    let image = |Image { media_type, data }: &Image| {
        let source = json!({"type": "base64", "media_type": media_type, "data": data});
        json!({"type": "image", "source": source})
    };
    let images = prompt.images.iter().map(image);
    let text = (!prompt.text.is_empty()).then(|| json!({"type": "text", "text": prompt.text}));
    images.chain(text).collect()
}

fn refuse(request_id: &str, error: &str, out: &mut Outbox) {
    let response = json!({"subtype": "error", "request_id": request_id, "error": error});
    out.send(&json!({"type": "control_response", "response": response}));
}

/// A change of the permissions that the agent suggests, as it travels.
type Suggestion = serde_json::Map<String, Value>;

/// What to grant of the suggestions for the rest of the session.
///
/// They may be meant for a file of the repository, where they would outlive the session. And next to
/// a rule for this one thing may stand a mode that allows every edit: that is more than was asked
/// about. Edits have no rule, so for them the mode is all there is.
fn for_the_session(suggestions: &RawValue) -> Option<Vec<Suggestion>> {
    let suggested: Vec<Suggestion> = serde_json::from_str(suggestions.get()).ok()?;
    let of_type = |types: &[&str]| -> Vec<Suggestion> {
        let is_of = |it: &&Suggestion| {
            let of = it.get("type").and_then(Value::as_str);
            of.is_some_and(|it| types.contains(&it))
        };
        suggested.iter().filter(is_of).cloned().collect()
    };
    let mut granted = of_type(&["addRules", "addDirectories"]);
    if granted.is_empty() {
        granted = of_type(&["setMode"]);
    }
    for it in &mut granted {
        it.insert("destination".to_owned(), "session".into());
    }
    (!granted.is_empty()).then_some(granted)
}

impl Claude {
    /// `is_early`: there is no prompt to begin with.
    pub fn new(is_early: bool) -> Self {
        Self {
            is_early,
            ..Self::default()
        }
    }

    fn request(&mut self, request: Value, out: &mut Outbox) -> String {
        self.n_requests += 1;
        let id = self.n_requests.to_string();
        out.send(&json!({"type": "control_request", "request_id": id, "request": request}));
        id
    }

    fn send_message(&mut self, prompt: &Prompt, out: &mut Outbox) {
        self.has_run = true;
        let message = json!({"role": "user", "content": content(prompt)});
        out.send(&json!({"type": "user", "message": message}));
    }

    fn on_permission_request(&mut self, id: &str, request: &ControlRequest<'_>, out: &mut Outbox) {
        if request.subtype == "can_use_tool" {
            let suggestions = request.permission_suggestions.map(ToOwned::to_owned);
            self.asks.insert(id.to_owned(), suggestions);
            return;
        }
        // Hooks, dialogs and tools of the host: none were offered, and the agent waits for an answer.
        refuse(
            id,
            &format!("unsupported request: {}", request.subtype),
            out,
        );
    }

    /// The run has ended. Its asks are settled with it, so no client will answer them.
    fn run_ended(&mut self, out: &mut Outbox) {
        self.has_run = false;
        for (id, _) in self.asks.drain() {
            refuse(&id, "the run is over", out);
        }
        if let Some(prompt) = self.waiting.pop_front() {
            self.send_message(&prompt, out);
        }
    }

    fn on_response(&mut self, response: &ControlResponse<'_>, out: &mut Outbox) {
        let setting = self.settings.remove(&*response.request_id);
        if let (Some(setting), Some(error)) = (setting, &response.error) {
            out.warn("not_set", format!("{setting} was not set: {error}"));
        }
        // Only `initialize` has a result worth reading, and only an early start sends it.
        let result = response.response.filter(|_| self.is_early);
        if let Some(result) = result.and_then(|it| serde_json::from_str(it.get()).ok()) {
            self.offered(result);
        }
    }

    fn offered(&mut self, result: InitializeResult) {
        let InitializeResult { commands, models } = result;
        // The answer to another request, such as a change of the mode.
        if commands.is_empty() && models.is_empty() {
            return;
        }
        let model = |it: ModelChoice| Offer {
            id: it.value,
            name: it.display_name,
            description: it.description,
        };
        let command = |it: CommandInfo| SlashCommand {
            name: it.name,
            description: it.description,
            hint: Some(it.argument_hint).filter(|it| !it.is_empty()),
        };
        self.offers = Offers {
            models: models.into_iter().map(model).collect(),
            model: None,
            commands: commands.into_iter().map(command).collect(),
        };
    }
}

impl Dialogue for Claude {
    fn open(&mut self, out: &mut Outbox) {
        if self.is_early {
            self.request(json!({"subtype": "initialize"}), out);
        }
    }

    fn line(&mut self, line: &str, out: &mut Outbox) {
        // Sub-agents have results, too; they name the call that started them.
        if !may_hold(line, &["\"control_", "\"result\""]) {
            return;
        }
        let Ok(line) = serde_json::from_str::<InboundLine<'_>>(line) else {
            return;
        };
        match (&*line.r#type, line.request_id, line.request, line.response) {
            ("result", ..) if line.parent_tool_use_id.is_none() => self.run_ended(out),
            ("control_request", Some(id), Some(request), _) => {
                self.on_permission_request(&id, &request, out)
            }
            ("control_response", _, _, Some(response)) => self.on_response(&response, out),
            // Claude Code withdraws an open ask when its turn is interrupted; it wants no answer.
            ("control_cancel_request", Some(id), ..) => {
                self.asks.remove(&*id);
            }
            _ => (),
        }
    }

    fn prompt(&mut self, prompt: &Prompt, out: &mut Outbox) {
        if self.has_run {
            self.waiting.push_back(prompt.clone());
        } else {
            self.send_message(prompt, out);
        }
    }

    fn interrupt(&mut self, out: &mut Outbox) -> bool {
        if self.has_run {
            self.request(json!({"subtype": "interrupt"}), out);
        }
        self.has_run
    }

    fn settle(
        &mut self,
        ask: &str,
        input: Option<&RawValue>,
        answer: &Answer,
        out: &mut Outbox,
    ) -> Result<(), NotSettled> {
        let suggestions = self.asks.get(ask).ok_or(NotSettled::NotOpen)?;
        let empty = RawValue::from_string("{}".to_owned()).expect("an empty object is JSON");
        let (changed, suggestions) = match answer {
            Answer::Allow { input } => (input, None),
            Answer::AllowAlways { input } => (input, suggestions.as_deref()),
            Answer::Deny { .. } => (&None, None),
        };
        let changed = changed.as_deref().map(in_one_line).transpose()?;
        let response = match answer {
            Answer::Allow { .. } | Answer::AllowAlways { .. } => Behavior::Allow {
                updated_input: changed.as_deref().or(input).unwrap_or(&empty),
                updated_permissions: suggestions.and_then(for_the_session),
            },
            Answer::Deny { message } => Behavior::Deny { message },
        };
        out.send(&PermissionResponse {
            r#type: "control_response",
            response: ControlSuccess {
                subtype: "success",
                request_id: ask,
                response,
            },
        });
        // Last, so that an answer that does not fit leaves the ask open.
        self.asks.remove(ask);
        Ok(())
    }

    fn takes_changes(&self) -> bool {
        true
    }

    fn set_model(&mut self, model: &str, out: &mut Outbox) -> bool {
        let id = self.request(json!({"subtype": "set_model", "model": model}), out);
        self.settings.insert(id, format!("model `{model}`"));
        true
    }

    fn set_mode(&mut self, mode: Mode, out: &mut Outbox) -> bool {
        let mode = match mode {
            // These differ in who answers the asks; not to ask needs a flag at the start.
            Mode::Ask | Mode::Allow | Mode::Deny | Mode::Listed => "default",
            Mode::AcceptEdits => "acceptEdits",
            Mode::Plan => "plan",
        };
        let id = self.request(json!({"subtype": "set_permission_mode", "mode": mode}), out);
        self.settings
            .insert(id, format!("permission mode `{mode}`"));
        true
    }

    fn offers(&self) -> Offers {
        self.offers.clone()
    }
}
