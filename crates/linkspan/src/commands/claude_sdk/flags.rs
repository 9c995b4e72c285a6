//! The flags of Claude Code, as its SDK writes them: `--name=value`, `--name value` or `--name`.
//!
//! The tables below say how each flag is handled. A flag that asks for something that linkspan cannot do is
//! refused; an unknown flag is reported and ignored, because every release of the SDK adds some.

use std::collections::BTreeMap;
use std::fs;

use claude_sdk::modes;
use formats::ClaudeClient;
use runner::{McpServer, McpVia, Mode, RunOptions};
use serde::Deserialize;

use crate::exit::{Failure, printable};

/// What the host wants.
#[derive(Debug, Default)]
pub(crate) struct ClaudeFlags {
    pub(crate) engine: Option<String>,
    pub(crate) options: RunOptions,
    pub(crate) client: ClaudeClient,
    pub(crate) asks_host: bool,
    pub(crate) resume: Option<String>,
    pub(crate) is_continue: bool,
    pub(crate) is_fork: bool,
    pub(crate) mcp_servers: Vec<McpServer>,
    /// The host holds a dialogue, instead of giving one prompt.
    pub(crate) is_dialogue: bool,
    /// What is ignored, one line each.
    pub(crate) ignored: Vec<String>,
}

/// Flags with a value that mean something here.
const WITH_VALUE: &[&str] = &[
    "--allowed-tools",
    "--allowedTools",
    "--disallowed-tools",
    "--disallowedTools",
    "--effort",
    "--engine",
    "--input-format",
    "--mcp-config",
    "--model",
    "--output-format",
    "--permission-mode",
    "--permission-prompt-tool",
    "--resume",
    "--setting-sources",
];
/// Flags without one.
const SWITCHES: &[&str] = &[
    "--allow-dangerously-skip-permissions",
    "--continue",
    "--dangerously-skip-permissions",
    "--debug",
    "--debug-to-stderr",
    "--fork-session",
    "--include-partial-messages",
    "--no-session-persistence",
    "--print",
    "--replay-user-messages",
    "--strict-mcp-config",
    "--verbose",
    "-p",
];
/// What only Claude Code can do.
const REFUSED: &[&str] = &[
    "--add-dir",
    "--agent",
    "--agents",
    "--append-system-prompt",
    "--betas",
    "--fallback-model",
    "--json-schema",
    "--max-budget-usd",
    "--max-thinking-tokens",
    "--max-turns",
    "--plugin-dir",
    "--resume-session-at",
    "--session-id",
    "--settings",
    "--system-prompt",
    "--task-budget",
    "--thinking",
    "--tools",
];

impl ClaudeFlags {
    pub(crate) fn read(args: &[String]) -> Result<Self, Failure> {
        let mut it = Self::default();
        let mut args = args.iter().map(String::as_str).peekable();
        while let Some(arg) = args.next() {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) if arg.starts_with("--") => (name, Some(value)),
                _ => (arg, None),
            };
            if REFUSED.contains(&name) {
                return Err(Failure::usage(
                    format!("`{name}` is not supported: only Claude Code itself has it"),
                    "leave it out; docs/sdks.md lists the supported flags",
                ));
            }
            if SWITCHES.contains(&name) {
                it.switch(name);
                continue;
            }
            // The value of a flag that is not known may be the next word.
            let next = args.next_if(|next| value.is_none() && !next.starts_with('-'));
            let value = value.or(next);
            match WITH_VALUE.contains(&name) {
                true => it.set(name, value.unwrap_or_default())?,
                false if name.starts_with('-') => it
                    .ignored
                    .push(format!("`{}` is not known, and ignored", printable(name))),
                // The one prompt of `claude -p`, which is on stdin or in a recording.
                false => (),
            }
        }
        Ok(it)
    }

    fn switch(&mut self, name: &str) {
        match name {
            "--continue" => self.is_continue = true,
            "--dangerously-skip-permissions" => self.options.permissions = Some(Mode::Allow),
            "--fork-session" => self.is_fork = true,
            "--include-partial-messages" => self.client.wants_partials = true,
            "--replay-user-messages" => self.client.replays_prompts = true,
            // The rest of the table changes nothing here.
            _ => (),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let list = || value.split(',').map(str::trim).filter(|it| !it.is_empty());
        let list = || list().map(str::to_owned).collect::<Vec<String>>();
        let one_of = |expected: &str| match value == expected {
            true => Ok(()),
            false => Err(Failure::usage(
                format!("`{name}` cannot be `{}`", printable(value)),
                format!("only `{expected}` is supported"),
            )),
        };
        match name {
            "--allowed-tools" | "--allowedTools" => self.options.allow = Some(list()),
            "--disallowed-tools" | "--disallowedTools" => self.options.deny = list(),
            "--effort" => self.options.effort = Some(value.to_owned()),
            "--engine" => self.engine = Some(value.to_owned()),
            "--input-format" => {
                self.is_dialogue = value == "stream-json";
            }
            "--mcp-config" => self.mcp_servers.extend(mcp_servers(value)?),
            "--model" => {
                let is_default = value == "default";
                self.options.model = (!is_default).then(|| value.to_owned());
            }
            "--output-format" => one_of("stream-json")?,
            "--permission-mode" => {
                let mode = modes::find(value).ok_or_else(|| {
                    Failure::usage(
                        format!("there is no permission mode `{}`", printable(value)),
                        format!("there are {}", modes::names()),
                    )
                })?;
                self.options.permissions = Some(mode);
            }
            "--permission-prompt-tool" => {
                one_of("stdio")?;
                self.asks_host = true;
            }
            "--resume" => self.resume = Some(value.to_owned()),
            // The settings are those of Claude Code.
            _ => (),
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct McpConfig {
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, McpEntry>,
}

#[derive(Deserialize)]
struct McpEntry {
    #[serde(default)]
    r#type: Option<String>,
    #[serde(default)]
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// JSON, or the name of a file with it.
fn mcp_servers(value: &str) -> Result<Vec<McpServer>, Failure> {
    let json = match value.trim_start().starts_with('{') {
        true => value.to_owned(),
        false => fs::read_to_string(value).map_err(|err| {
            Failure::io(&format!("cannot read `{}`", printable(value)), &err, None)
        })?,
    };
    let config: McpConfig = serde_json::from_str(&json).map_err(|err| {
        Failure::usage(
            format!("`--mcp-config` cannot be read: {err}"),
            "it is `{\"mcpServers\": {…}}`",
        )
    })?;
    let server = |(name, it): (String, McpEntry)| {
        let via = match it.r#type.as_deref() {
            None | Some("stdio") => McpVia::Stdio {
                command: it.command,
                args: it.args,
                env: it.env.into_iter().collect(),
            },
            Some("http") => McpVia::Http {
                url: it.url,
                headers: it.headers.into_iter().collect(),
            },
            Some("sse") => McpVia::Sse {
                url: it.url,
                headers: it.headers.into_iter().collect(),
            },
            // A server inside of the host is called through messages that only Claude Code sends.
            Some(other) => {
                return Err(Failure::usage(
                    format!("the MCP server `{}` is not supported", printable(&name)),
                    format!(
                        "a server of the type `{}` is only for Claude Code",
                        printable(other)
                    ),
                ));
            }
        };
        Ok(McpServer { name, via })
    };
    config.servers.into_iter().map(server).collect()
}

#[cfg(test)]
mod tests;
