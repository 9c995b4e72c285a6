//! OpenHands: a conversation of its SDK, held by a small Python program that comes with linkspan.
//!
//! The program (`openhands/shim.py`) takes lines of its own on stdin and prints the SDK's events. One
//! prompt is the same as many: its lines are written, and stdin is closed.

use serde::Serialize;
use serde_json::{Value, json};

use super::invocation::{allowed, mcp_servers};
use super::{AgentRules, EngineConfig, Error, Invocation, arguments};
use crate::request::{Image, Interaction, Mode, Prompt, Request, Resume, Stdin};

/// What `listed` allows when neither the caller nor the config has a list; looking is never asked.
pub(crate) const ALLOWED_TOOLS: &[&str] = &["terminal", "file_editor"];

pub(super) const SHIM: &str = include_str!("openhands/shim.py");

/// Says which SDK a Python has, without importing it, and without looking into the working directory.
pub(super) const VERSION: &[&str] = &[
    "-c",
    "import sys; sys.path[:] = [it for it in sys.path if it]; \
     from importlib.metadata import version; print(version('openhands-sdk'))",
];

/// What calls may run.
#[derive(Debug, Serialize)]
pub(crate) struct ToolRules {
    /// All but those that are denied.
    everything: bool,
    /// Changes of files below the working directory.
    edits: bool,
    /// A client can answer; otherwise everything that is not allowed is denied.
    asks: bool,
    allow: Vec<String>,
    deny: Vec<String>,
}

/// The first line for the shim.
pub(crate) fn open_line(config: &EngineConfig, request: &Request) -> Value {
    let mut line = json!({"type": "open", "permissions": limits(config, request)});
    match &request.resume {
        Resume::Fresh => (),
        Resume::Latest => line["latest"] = json!(true),
        Resume::Session(id) => line["session"] = json!(id),
        Resume::Fork(id) => line["fork"] = json!(id),
    }
    if let Some(model) = request.options.model.as_ref().or(config.model.as_ref()) {
        line["model"] = json!(model);
    }
    if let Some(effort) = &request.options.effort {
        line["effort"] = json!(effort);
    }
    if !request.mcp_servers.is_empty() {
        // By name, as the SDK's own config has them.
        line["mcp_servers"] = mcp_servers(&request.mcp_servers, "transport");
    }
    line
}

pub(crate) fn prompt_line(prompt: &Prompt) -> Value {
    let mut line = json!({"type": "prompt", "text": prompt.text});
    if !prompt.images.is_empty() {
        let data = |it: &Image| format!("data:{};base64,{}", it.media_type, it.data);
        line["images"] = prompt.images.iter().map(data).collect();
    }
    line
}

pub(crate) fn limits(config: &EngineConfig, request: &Request) -> ToolRules {
    let mode = request.permissions.mode;
    let allow = named(&allowed(config, request, ALLOWED_TOOLS));
    ToolRules {
        everything: mode == Mode::Allow,
        edits: mode == Mode::AcceptEdits,
        asks: request.can_ask(),
        allow,
        deny: named(&request.permissions.deny),
    }
}

/// OpenHands' own names; users may name the kinds of tools instead.
fn named(tools: &[String]) -> Vec<String> {
    let name = |it: &String| match it.as_str() {
        "shell" => "terminal".to_owned(),
        "edit" | "write" => "file_editor".to_owned(),
        _ => it.clone(),
    };
    tools.iter().map(name).collect()
}

pub(super) const RULES: AgentRules = AgentRules::new(invocation, ALLOWED_TOOLS);

fn invocation(config: &EngineConfig, request: &Request) -> Result<Invocation, Error> {
    if let Resume::Session(id) | Resume::Fork(id) = &request.resume
        && !arguments::is_uuid(arguments::id(id)?)
    {
        return Err(arguments::refused(
            "the session id",
            "is no UUID, which OpenHands needs",
            id,
        ));
    }
    if let Some(model) = request.options.model.as_ref().or(config.model.as_ref()) {
        arguments::model(model)?;
    }
    if let Some(effort) = &request.options.effort {
        arguments::flag_value("the effort", effort)?;
    }
    // The default list is left out, because its names are known to be whole tools.
    arguments::whole_tools(&allowed(config, request, &[]))?;
    arguments::whole_tools(&request.permissions.deny)?;
    let stdin = match request.talk {
        Interaction::Dialogue => Stdin::Open,
        Interaction::OneShot => {
            let prompt = request.prompt.as_str().into();
            let lines = [open_line(config, request), prompt_line(&prompt)];
            Stdin::Text(lines.map(|it| format!("{it}\n")).concat())
        }
    };
    let mut it = Invocation::new(stdin);
    // The user's arguments are for Python: behind `-c` they would be those of the shim.
    it.extra(config).args(["-c", SHIM]);
    Ok(it)
}
