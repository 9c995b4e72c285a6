//! The options of a run as flags, the same for `run` and `acp`.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use runner::permissions::{MODES, ModeInfo};
use runner::{Mode, RunOptions};

use super::AskArgs;

/// How the agent works; overrides the config.
#[derive(Args, Debug)]
pub(crate) struct OptionArgs {
    /// The model, by the agent's own name for it
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// The reasoning effort, in the agent's own terms, such as low or high
    #[arg(long, value_name = "LEVEL")]
    pub(crate) effort: Option<String>,

    /// What the agent may do without asking, and what happens when it asks
    ///
    /// The default is `ask` for `acp` and for `run` on a terminal, and `listed` for `run` elsewhere.
    #[arg(long, value_name = "MODE", value_parser = modes())]
    pub(crate) permissions: Option<Mode>,

    /// A tool that may run without asking, by the agent's own name for it; may be repeated
    ///
    /// These tools are the complete list: they replace `allowed_tools` in the config.
    #[arg(long, value_name = "TOOL", value_parser = tool)]
    pub(crate) allow: Vec<String>,

    /// A tool that may not run, whatever else allows it; may be repeated
    #[arg(long, value_name = "TOOL", value_parser = tool)]
    pub(crate) deny: Vec<String>,

    /// The output style of Claude Code, by name
    #[arg(long, value_name = "NAME")]
    pub(crate) output_style: Option<String>,

    /// How much Codex writes: low, medium or high
    #[arg(long, value_name = "LEVEL")]
    pub(crate) verbosity: Option<String>,

    #[command(flatten)]
    pub(crate) asks: AskArgs,
}

impl OptionArgs {
    /// The timeout of asks is laid over the config instead, which knows its units.
    pub(crate) fn run_options(&self) -> RunOptions {
        let Self {
            model,
            effort,
            permissions,
            allow,
            deny,
            output_style,
            verbosity,
            asks: _,
        } = self;
        RunOptions {
            model: model.clone(),
            effort: effort.clone(),
            permissions: *permissions,
            // An empty list would replace that of the config.
            allow: (!allow.is_empty()).then(|| allow.clone()),
            deny: deny.clone(),
            output_style: output_style.clone(),
            verbosity: verbosity.clone(),
            speed: None,
            ask_timeout: None,
            ask_default: None,
        }
    }
}

/// The permission modes, with a line of help each.
fn modes() -> impl TypedValueParser<Value = Mode> {
    let value = |it: &ModeInfo| PossibleValue::new(it.name).help(it.summary);
    let names = PossibleValuesParser::new(MODES.iter().map(value));
    names.try_map(|name| Mode::parse(&name).ok_or("there is no such mode"))
}

/// The name of a tool, or a pattern such as `Bash(git *)`: never empty, and nothing hidden around it.
fn tool(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("it is empty; name a tool, such as `Bash`".to_owned());
    }
    if text.trim() != text || text.chars().any(char::is_control) {
        return Err(
            "a tool has no spaces around its name and no control characters in it".to_owned(),
        );
    }
    Ok(text.to_owned())
}
