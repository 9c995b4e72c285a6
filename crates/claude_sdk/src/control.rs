//! What the host asks for: `initialize`, `interrupt`, other settings.

use hub::Cancelled;
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::modes;

/// What `initialize` may ask for and only Claude Code itself can do: the host would be called back.
const ONLY_CLAUDE: &[(&str, &str)] = &[
    ("hooks", "hooks"),
    ("sdkMcpServers", "MCP servers inside of the host"),
    ("agents", "agents"),
    ("systemPrompt", "a system prompt"),
    ("appendSystemPrompt", "an appended system prompt"),
    ("jsonSchema", "an output format"),
];

impl Connection {
    /// Answers immediately, so that later lines on stdin take effect after this one.
    pub(crate) fn control(&mut self, request: &Value) -> Result<Value, String> {
        match request["subtype"].as_str().unwrap_or_default() {
            "initialize" => {
                let refused = self.refuse(request);
                // A host need not wait for this answer, and its prompts must not run without what it asked for.
                self.refusal = refused.clone().err();
                refused.map(|()| self.introduction())
            }
            "interrupt" => {
                self.interrupt();
                Ok(json!({"still_queued": []}))
            }
            "set_permission_mode" => {
                let name = request["mode"].as_str().unwrap_or_default();
                let mode = modes::find(name)
                    .ok_or_else(|| format!("there is no mode `{name}`, only {}", modes::names()))?;
                self.core.change_mode(mode);
                self.writer.set_mode(name, &mut self.lines);
                Ok(json!({"mode": name}))
            }
            "set_model" => {
                let model = request["model"].as_str().filter(|it| *it != "default");
                self.core.change_model(model.map(str::to_owned));
                self.writer.set_model(model);
                Ok(json!({"model": model}))
            }
            "mcp_status" => Ok(json!({"mcpServers": []})),
            other => Err(format!("`{other}` cannot be done with this engine")),
        }
    }

    fn refuse(&self, request: &Value) -> Result<(), String> {
        for (key, what) in ONLY_CLAUDE {
            if is_given(&request[*key]) {
                let engine = &self.config.session.engine;
                return Err(format!(
                    "`{key}` is not supported: linkspan cannot give {what} to {engine}"
                ));
            }
        }
        Ok(())
    }

    fn introduction(&self) -> Value {
        json!({
            "commands": [],
            "agents": [],
            "models": [],
            "output_style": "default",
            "available_output_styles": ["default"],
            "account": {},
            "pid": std::process::id(),
            "linkspan_version": self.config.version,
            "engine": self.config.session.engine,
            "current_permission_mode": modes::name(self.core.mode()),
        })
    }

    pub(crate) fn interrupt(&mut self) {
        // Queued prompts stay: the next one starts when this turn has ended.
        let Some(turn) = &mut self.turn else { return };
        turn.is_cancelled = true;
        match self.core.cancel() {
            Cancelled::NotBegun => self.end_unbegun(),
            // The answer comes with the end of the run, or once the agent has started.
            Cancelled::Stopping | Cancelled::Starting => (),
        }
    }
}

/// An empty value asks for nothing: the SDK sends `[""]` for no system prompt.
fn is_given(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => list.iter().any(is_given),
        Value::Object(map) => !map.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_asks_for_something_is_refused() {
        for nothing in [json!(null), json!([""]), json!([]), json!({}), json!("")] {
            assert!(!is_given(&nothing), "{nothing}");
        }
        for something in [json!("Be brief."), json!(["a"]), json!({"PreToolUse": []})] {
            assert!(is_given(&something), "{something}");
        }
    }
}
