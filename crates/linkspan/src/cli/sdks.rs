//! The command lines of other agents' programs, for the SDKs that start them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub(super) const EXEC_EXAMPLE: &str = "\
Examples:
  echo 'fix the failing test' | linkspan exec --json --config 'linkspan.engine=\"claude\"'
  echo 'and now the docs' | linkspan exec --json resume 5c0d8a1e-7f63-4a51-9d43-2f6f0e3a5b7c

In a program, with @openai/codex-sdk:
  new Codex({ codexPathOverride: '/usr/bin/linkspan', config: { linkspan: { engine: 'claude' } } })";

pub(super) const CLAUDE_SDK_EXAMPLE: &str = "\
In a program, with @anthropic-ai/claude-agent-sdk:
  query({ prompt, options: { pathToClaudeCodeExecutable: '/usr/bin/linkspan',
          env: { ...process.env, LINKSPAN_ENGINE: 'codex' } } })

Example:
  linkspan claude-sdk --engine codex --output-format stream-json --input-format stream-json";

/// Run one prompt like `codex exec`, for programs that start Codex
///
/// The prompt is read from stdin, and ThreadEvents are written to stdout. Flags that only Codex supports are
/// passed on to Codex, and refused with any other engine.
#[derive(Args, Debug, Default)]
#[command(disable_help_subcommand = true)]
pub(crate) struct ExecArgs {
    /// Write ThreadEvents instead of a transcript
    #[arg(long, alias = "experimental-json")]
    pub(crate) json: bool,

    /// A setting of Codex, or one of `linkspan.engine`, `linkspan.permissions` and
    /// `linkspan.allowed_tools`
    #[arg(short, long, value_name = "KEY=VALUE")]
    pub(crate) config: Vec<String>,

    /// The model, by the agent's own name for it
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// What the agent may do: only read, also write in the working directory, or everything
    #[arg(short, long, value_name = "MODE")]
    pub(crate) sandbox: Option<Sandbox>,

    /// Where the agent works; by default the current directory
    #[arg(short = 'C', long = "cd", value_name = "DIR")]
    pub(crate) cd: Option<PathBuf>,

    /// Another directory that the agent may write to; Codex only
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Accepted for compatibility: no engine requires a git repository
    #[arg(long)]
    pub(crate) skip_git_repo_check: bool,

    /// The JSON Schema of the answer; Codex only
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,

    /// The origin of the thread; Codex only
    #[arg(long, value_name = "SOURCE")]
    pub(crate) thread_source: Option<String>,

    /// The cyber access program that the account belongs to; Codex only
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) cyber_access_program: Option<String>,

    /// An image for the prompt; Codex only
    #[arg(short, long, value_name = "FILE", global = true)]
    pub(crate) image: Vec<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Option<ExecCommand>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sandbox {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExecCommand {
    /// Resume a session, given by the agent's own id or the id from `linkspan sessions`
    Resume { id: String },
}

/// Run as the `claude` program of the Claude Agent SDK, with any engine
///
/// The SDK starts it with the flags of Claude Code, and talks to it over stdin and stdout. The engine is
/// `LINKSPAN_ENGINE`, or else `--engine`, that of the resumed session, or the default of the config. Flags
/// that only Claude Code supports are refused; unknown flags are reported and ignored.
#[derive(Args, Debug)]
pub(crate) struct ClaudeSdkArgs {
    /// The flags of Claude Code, and `--engine ENGINE`
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAG"
    )]
    pub(crate) flags: Vec<String>,
}
