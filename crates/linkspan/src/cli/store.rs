//! The flags of the commands around the journal: serving it, looking into it, and who may.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use formats::registry;
use journal::State;
use server::Role;

use super::{Color, ConfigFile, targets};

pub(super) const SERVE_EXAMPLE: &str = "\
Examples:
  linkspan serve
  linkspan serve --listen 127.0.0.1:0 --data-dir /srv/linkspan
  linkspan serve --listen unix:/run/user/1000/linkspan.sock --ready-json
  linkspan serve --listen 0.0.0.0:8787 --tls-cert cert.pem --tls-key key.pem \\
    --origin https://dev.example.com:8787";

pub(super) const STDIO_EXAMPLE: &str = "\
Examples:
  (echo '{\"control\":\"run.submit\",\"prompt\":\"hi\",\"engine\":\"replay:tools\"}'; sleep 5) | linkspan stdio
  linkspan stdio --to openhands";

pub(super) const TOKEN_EXAMPLE: &str = "\
Examples:
  linkspan token
  linkspan token --role watch
  linkspan token --revoke 1a2b3c4d";

pub(super) const SESSIONS_EXAMPLE: &str = "\
Examples:
  linkspan sessions
  linkspan sessions parser
  linkspan sessions --state running --json | jq -r .id
  linkspan sessions --prune --keep-days 30
  linkspan sessions --remove 01991a2b-5c6d-7e8f-9a0b-1c2d3e4f5a6b";

pub(super) const REPLAY_EXAMPLE: &str = "\
Examples:
  linkspan replay 01991a2b-5c6d-7e8f-9a0b-1c2d3e4f5a6b --to markdown
  linkspan replay 01991a2b-5c6d-7e8f-9a0b-1c2d3e4f5a6b --to linkspan > run.jsonl
  linkspan replay run.jsonl --as codex -- exec --json < prompt.txt
  linkspan replay run.jsonl --as acp";

pub(super) const DOCTOR_EXAMPLE: &str = "\
Examples:
  linkspan doctor
  linkspan doctor --json | jq -r 'select(.level == \"problem\").text'
  linkspan doctor --repair";

/// Where the journal is.
#[derive(Args, Debug)]
pub(crate) struct DataDir {
    /// Where sessions and tokens are kept; by default `LINKSPAN_DATA_DIR`, or else the user's data directory
    #[arg(long = "data-dir", value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Handling of unanswered asks; overrides the config.
#[derive(Args, Debug)]
pub(crate) struct AskArgs {
    /// Seconds after which an unanswered ask gets the answer in `--ask-default`; 0 means no timeout
    #[arg(long, value_name = "SECONDS")]
    pub(crate) ask_timeout: Option<String>,

    /// The answer to an ask that times out: deny (the default) or allow
    #[arg(long, value_name = "ANSWER")]
    pub(crate) ask_default: Option<String>,
}

/// Retention limits; overrides the config.
#[derive(Args, Debug)]
pub(crate) struct KeepArgs {
    /// Remove sessions unused for this many days
    #[arg(long, value_name = "DAYS")]
    keep_days: Option<String>,

    /// Keep at most this many sessions, the most recently used
    #[arg(long, value_name = "N")]
    keep_sessions: Option<String>,

    /// Keep sessions up to this total size, such as `2GiB`
    #[arg(long, value_name = "BYTES")]
    keep_bytes: Option<String>,
}

impl KeepArgs {
    /// Config key, flag and value.
    pub(crate) fn flags(&self) -> [(&'static str, &'static str, &Option<String>); 3] {
        let (sessions, flag) = ("journal.keep_sessions", "--keep-sessions");
        [
            ("journal.keep_days", "--keep-days", &self.keep_days),
            (sessions, flag, &self.keep_sessions),
            ("journal.keep_bytes", "--keep-bytes", &self.keep_bytes),
        ]
    }
}

/// Serve sessions to browsers and programs, and take prompts from them
///
/// Prints its address when it is ready, and on the first start the address of the page with its
/// token. Anyone with a token can run agents here, so keep it secret. Ctrl-C aborts all runs and
/// stops the server; a second Ctrl-C stops it immediately.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Where to listen: an IP address and a port (0 picks a free one), or `unix:PATH`
    ///
    /// An address that other machines can reach needs `--tls-cert` and `--tls-key`, or `--behind-proxy`.
    /// Only you can open the socket at PATH, so it needs no token.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787", value_parser = address)]
    pub(crate) listen: ListenAddress,

    #[command(flatten)]
    pub(crate) data: DataDir,

    /// The file with the admin token; by default the one in the data directory
    ///
    /// `LINKSPAN_TOKEN` gives the token itself, without a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) file: ConfigFile,

    #[command(flatten)]
    pub(crate) asks: AskArgs,

    /// Server certificate chain, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// A reverse proxy terminates TLS, and the port cannot be reached in any other way
    #[arg(long, conflicts_with = "tls_cert")]
    pub(crate) behind_proxy: bool,

    /// Another address of the page, such as `https://agents.example.com`; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Vec<String>,

    /// Another origin whose pages may use the API from a browser; may be repeated
    ///
    /// Such a page may call `/ag-ui`, `/api` and `/ws` and read the responses, with a token like any
    /// other client. Write the origin as browsers do, such as `http://localhost:3000`.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,

    /// Let agents work only in this directory and below; may be repeated
    ///
    /// Without it, the role `admin` may use any directory; other roles may use the directory that the
    /// server was started in, those of sessions and projects, and everything below them.
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,

    /// When the server is listening, print its address and pid to stdout as one JSON object
    #[arg(long, alias = "json")]
    pub(crate) ready_json: bool,

    /// Stop when stdin ends, which happens when the program that started the server exits
    #[arg(long)]
    pub(crate) until_stdin_closes: bool,

    /// The format of the log on stderr: `text` or `json`
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,

    /// The minimum level of the log: `off`, `error`, `warn`, `info` or `debug`
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,

    #[command(flatten)]
    pub(crate) keep: KeepArgs,

    /// Shorten longer texts to about this size when they are stored, such as `64KiB`
    #[arg(long, value_name = "BYTES")]
    pub(crate) cut_above: Option<String>,
}

/// Run agents for another program, with JSON lines on stdin and stdout
///
/// Controls go in, and replies, events and asks come out, as over the server's WebSocket; see
/// docs/stdio.md. The first line is `bridge.ready`. When stdin ends, all runs are aborted and the program
/// exits. It shares the journal with `run` and `serve`, even while they are running.
#[derive(Args, Debug)]
pub(crate) struct StdioArgs {
    /// The format of the events
    #[arg(long, value_name = "FORMAT", default_value = "thread", value_parser = live_targets())]
    pub(crate) to: String,

    /// The profile, a variant of the format; see `linkspan formats`
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    #[command(flatten)]
    pub(crate) asks: AskArgs,

    #[command(flatten)]
    pub(crate) file: ConfigFile,

    #[command(flatten)]
    pub(crate) data: DataDir,
}

fn live_targets() -> PossibleValuesParser {
    let formats = registry::live_formats();
    let values = formats.map(|it| PossibleValue::new(it.name).help(it.summary));
    values.collect::<Vec<_>>().into()
}

/// Where a server listens.
#[derive(Clone, Debug)]
pub(crate) enum ListenAddress {
    Port(SocketAddr),
    Socket(PathBuf),
}

fn address(text: &str) -> Result<ListenAddress, String> {
    if let Some(path) = text.strip_prefix("unix:").filter(|it| !it.is_empty()) {
        return Ok(ListenAddress::Socket(path.into()));
    }
    let expected = "it is an IP address and a port, such as `127.0.0.1:8787`, or `unix:PATH`";
    let port = text.parse().map(ListenAddress::Port);
    port.map_err(|_| expected.to_owned())
}

fn roles() -> impl TypedValueParser<Value = Role> {
    let help = |role| match role {
        Role::Watch => "Read sessions",
        Role::Prompt => "Also submit prompts and stop runs",
        Role::Approve => "Also answer asks",
        Role::Admin => "Everything",
    };
    let names = Role::ALL.map(|it| PossibleValue::new(it.name()).help(help(it)));
    let find = |name: &str| Role::ALL.into_iter().find(|it| it.name() == name);
    PossibleValuesParser::new(names).try_map(move |it| find(&it).ok_or("there is no such role"))
}

/// Print the address of the page with its token, and create, list and revoke tokens
///
/// A running server accepts a new token immediately, and closes the connections of a revoked one.
#[derive(Args, Debug)]
pub(crate) struct TokenArgs {
    /// Create a token with this role and print it; it is not shown again
    #[arg(long, value_parser = roles())]
    pub(crate) role: Option<Role>,

    /// Revoke the token with this id
    #[arg(long, value_name = "ID", conflicts_with = "role")]
    pub(crate) revoke: Option<String>,

    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) data: DataDir,

    /// The file with the admin token; by default the one in the data directory
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// List sessions, newest first, and remove old ones
///
/// `--prune` removes the sessions that exceed the limits in the config's `[journal]` and the
/// `--keep-…` flags. A session that is running or has queued prompts is kept.
#[derive(Args, Debug)]
pub(crate) struct SessionsArgs {
    /// Only sessions with this word in their title, directory or id; the same as `--text`
    #[arg(conflicts_with = "text")]
    pub(crate) word: Option<String>,

    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,

    /// The maximum number of sessions
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = at_least_one)]
    pub(crate) limit: u32,

    /// Only sessions of this engine
    #[arg(short, long, value_name = "ENGINE")]
    pub(crate) engine: Option<String>,

    /// Only sessions in this state
    #[arg(long, value_parser = states())]
    pub(crate) state: Option<State>,

    /// Only sessions with this text in their title, directory or id
    #[arg(long)]
    pub(crate) text: Option<String>,

    /// Remove the sessions that exceed the limits, and print how many were removed
    #[arg(long, conflicts_with_all = ["word", "engine", "state", "text", "limit"])]
    pub(crate) prune: bool,

    #[command(flatten)]
    pub(crate) keep: KeepArgs,

    #[command(flatten)]
    pub(crate) file: ConfigFile,

    /// Remove this session and everything in it, given by linkspan's id or the agent's own
    #[arg(long, value_name = "ID", conflicts_with_all = ["word", "json", "limit", "engine", "state", "text", "prune"])]
    pub(crate) remove: Option<String>,

    #[command(flatten)]
    pub(crate) data: DataDir,
}

fn at_least_one(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|it| *it > 0);
    number.ok_or_else(|| "it is a whole number from 1 on".to_owned())
}

fn states() -> impl TypedValueParser<Value = State> {
    let value = |it: State| {
        let value = PossibleValue::new(it.name());
        match it {
            State::Idle | State::Running => value,
            State::Queued => value.help("Prompts are queued and no run is active"),
            State::Starting => {
                value.help("A prompt was accepted, but its agent has not printed anything yet")
            }
            State::Waiting => value.help("The agent is waiting for an answer"),
        }
    };
    let names = PossibleValuesParser::new(State::ALL.map(value));
    names.try_map(|name| State::find(&name).ok_or("there is no such state"))
}

/// Write a session in any format, or play it as a fake agent
///
/// With `--as` it plays a recording in the protocol of that agent, whatever the prompts are, so that other
/// programs can be tested without the real agent. Nothing is stored.
#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// The session, given by linkspan's id or the agent's own, or by the first or last characters of it. With
    /// `--as` it may also be a recording: a file, or the name of a bundled one
    pub(crate) id: String,

    /// The format of the output
    #[arg(long, value_name = "FORMAT", value_parser = targets(), required_unless_present = "fake")]
    pub(crate) to: Option<String>,

    /// The agent to play
    #[arg(long = "as", id = "fake", value_name = "AGENT", conflicts_with_all = ["to", "profile"])]
    pub(crate) fake: Option<FakeAgent>,

    /// The speed with `--as`: 1 is the original pace; 0, the default, plays without pauses
    #[arg(long, value_name = "N", default_value_t = f64::INFINITY, hide_default_value = true, value_parser = super::speed)]
    pub(crate) speed: f64,

    /// The profile, a variant of the format; see `linkspan formats`
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Whether output made for people is coloured
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,

    #[command(flatten)]
    pub(crate) data: DataDir,

    /// The arguments of the fake agent, after `--`
    #[arg(last = true, value_name = "ARG", requires = "fake")]
    pub(crate) agent_args: Vec<String>,
}

/// An agent whose protocol is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FakeAgent {
    /// Claude Code: stream-json, and its control protocol with `--input-format stream-json`
    Claude,
    /// `codex exec --json`
    Codex,
    /// An ACP agent on stdin and stdout
    Acp,
}

/// Check the journal, the tokens, the config, the engines and the data directory
///
/// Prints one line for each finding: `ok`, `warn` or `problem`. It reads every row of the journal,
/// changes nothing, and can be used while a server is running.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Copy the undamaged part of a damaged journal into a new one, and report what was lost
    ///
    /// The old journal is kept beside it, with the time in its name. The journal must not be in use.
    /// Runs that a program left open when it died are closed as lost.
    #[arg(long)]
    pub(crate) repair: bool,

    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) data: DataDir,

    /// The file with the admin token; by default the one in the data directory
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) file: ConfigFile,
}
