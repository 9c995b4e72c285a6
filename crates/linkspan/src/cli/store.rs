//! The flags of the commands around the journal: serving it, looking into it, and who may.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
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
  linkspan replay 01991a2b-5c6d-7e8f-9a0b-1c2d3e4f5a6b --to linkspan > run.jsonl";

pub(super) const DOCTOR_EXAMPLE: &str = "\
Examples:
  linkspan doctor
  linkspan doctor --json | jq -r 'select(.level == \"problem\").text'
  linkspan doctor --repair";

/// Where the journal is.
#[derive(Args, Debug)]
pub(crate) struct DataDir {
    /// Where sessions and tokens are kept; else `LINKSPAN_DATA_DIR`, else the user's own data directory
    #[arg(long = "data-dir", value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Handling of unanswered asks; overrides the config.
#[derive(Args, Debug)]
pub(crate) struct AskArgs {
    /// Seconds after which an unanswered ask is answered by `--ask-default`; 0 means no timeout
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

    /// Keep at most this much of all sessions, such as `2GiB`
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
/// stops; a second one stops at once.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Where to listen: an IP address and a port, of which 0 picks one, or `unix:PATH`
    ///
    /// An address that other machines reach needs `--tls-cert` and `--tls-key`, or `--behind-proxy`. A
    /// socket at PATH can be opened by you alone, so no token is asked for there.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787", value_parser = address)]
    pub(crate) listen: ListenAddress,

    #[command(flatten)]
    pub(crate) data: DataDir,

    /// The file with the token that opens everything; else the one in the data directory
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

    /// TLS is terminated by a reverse proxy, and the port is not otherwise reachable
    #[arg(long, conflicts_with = "tls_cert")]
    pub(crate) behind_proxy: bool,

    /// Another address of the page, as browsers write it; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Vec<String>,

    /// A page of another origin that may use the API from a browser; may be repeated
    ///
    /// Its requests to `/ag-ui`, `/api` and `/ws` are let through and it may read the answers, with
    /// a token like any other client. Write it as browsers do, such as `http://localhost:3000`.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,

    /// A directory that agents may work in, and below; may be repeated
    ///
    /// Without one, `admin` may name any directory; others may name those below the one that the server
    /// was started in, and those of sessions and projects.
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,

    /// Print one JSON object to stdout once it listens, instead of words: where, and its process
    #[arg(long, alias = "json")]
    pub(crate) ready_json: bool,

    /// Stop when stdin ends, as it does when the program that started this one is gone
    #[arg(long)]
    pub(crate) until_stdin_closes: bool,

    /// How the log on stderr is written: `text` or `json`
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,

    /// The least important lines of the log: `off`, `error`, `warn`, `info` or `debug`
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,

    #[command(flatten)]
    pub(crate) keep: KeepArgs,

    /// Store longer texts shortened to about this, such as `64KiB`
    #[arg(long, value_name = "BYTES")]
    pub(crate) cut_above: Option<String>,
}

/// Run agents for the program that starts this: JSON lines on stdin and stdout
///
/// Controls go in, and replies, events and questions come out, as over the server's WebSocket; see
/// docs/stdio.md. The first line is `bridge.ready`. When stdin ends, all runs are aborted and the program
/// exits. It uses the journal of `run` and `serve`, also while these run.
#[derive(Args, Debug)]
pub(crate) struct StdioArgs {
    /// The format of the events
    #[arg(long, value_name = "FORMAT", default_value = "thread", value_parser = live_targets())]
    pub(crate) to: String,

    /// A shape of the events other than the default; see `linkspan formats`
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
        Role::Watch => "Look at sessions",
        Role::Prompt => "Also give prompts and stop runs",
        Role::Approve => "Also answer what agents ask",
        Role::Admin => "Everything",
    };
    let names = Role::ALL.map(|it| PossibleValue::new(it.name()).help(help(it)));
    let find = |name: &str| Role::ALL.into_iter().find(|it| it.name() == name);
    PossibleValuesParser::new(names).try_map(move |it| find(&it).ok_or("there is no such role"))
}

/// Print the address of the page with its token, and make, list and revoke tokens
///
/// A running server takes a new token at once and closes what a revoked one has opened.
#[derive(Args, Debug)]
pub(crate) struct TokenArgs {
    /// Make a token that may do this, and print it; it is not shown again
    #[arg(long, value_parser = roles())]
    pub(crate) role: Option<Role>,

    /// Revoke the token of this id
    #[arg(long, value_name = "ID", conflicts_with = "role")]
    pub(crate) revoke: Option<String>,

    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) data: DataDir,

    /// The file with the token that opens everything; else the one in the data directory
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// List sessions, the newest first, and remove old ones
///
/// `--prune` removes what is over the limits of the config's `[journal]` and of the `--keep-…` flags.
/// A session that runs or has prompts waiting stays.
#[derive(Args, Debug)]
pub(crate) struct SessionsArgs {
    /// Only those with this word in their title, directory or id, as with `--text`
    #[arg(conflicts_with = "text")]
    pub(crate) word: Option<String>,

    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,

    /// How many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,

    /// Only those of this engine
    #[arg(short, long, value_name = "ENGINE")]
    pub(crate) engine: Option<String>,

    /// Only those in this state
    #[arg(long, value_parser = states())]
    pub(crate) state: Option<State>,

    /// Only those with this text in their title, directory or id
    #[arg(long)]
    pub(crate) text: Option<String>,

    /// Remove the sessions that are over the limits, and say how many
    #[arg(long, conflicts_with_all = ["word", "engine", "state", "text", "limit"])]
    pub(crate) prune: bool,

    #[command(flatten)]
    pub(crate) keep: KeepArgs,

    #[command(flatten)]
    pub(crate) file: ConfigFile,

    /// Remove this session with all that is in it, by its id here or by the agent's own
    #[arg(long, value_name = "ID", conflicts_with_all = ["word", "json", "limit", "engine", "state", "text", "prune"])]
    pub(crate) remove: Option<String>,

    #[command(flatten)]
    pub(crate) data: DataDir,
}

fn states() -> impl TypedValueParser<Value = State> {
    let value = |it: State| {
        let value = PossibleValue::new(it.name());
        match it {
            State::Idle | State::Running => value,
            State::Queued => value.help("A prompt waits for its turn"),
            State::Starting => {
                value.help("A prompt was accepted and its agent has not printed anything yet")
            }
            State::Waiting => value.help("The agent has asked something"),
        }
    };
    let names = PossibleValuesParser::new(State::ALL.map(value));
    names.try_map(|name| State::find(&name).ok_or("there is no such state"))
}

/// Write a session in any format
#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// The session, by its id here or by the agent's own; the first characters will do
    pub(crate) id: String,

    /// The format of the output
    #[arg(long, value_name = "FORMAT", value_parser = targets())]
    pub(crate) to: String,

    /// A shape of the output other than the default; see `linkspan formats`
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Whether output made for people is coloured
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,

    #[command(flatten)]
    pub(crate) data: DataDir,
}

/// Check the journal, the tokens, the config, the engines and the data directory
///
/// Prints what it found, one line each: `ok`, `warn` or `problem`. Looking changes nothing, and a
/// server may run meanwhile; every row of the journal is read.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Copy the undamaged part of a damaged journal into a new one, and report what was lost
    ///
    /// The old one is kept beside it, with the time in its name. The journal must not be in use.
    #[arg(long)]
    pub(crate) repair: bool,

    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) data: DataDir,

    /// The file with the token that opens everything; else the one in the data directory
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) file: ConfigFile,
}
