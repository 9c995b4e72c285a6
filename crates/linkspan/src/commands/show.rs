//! `linkspan show`: a recording or a session as a transcript, through a pager on a terminal.

use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use formats::{WriterConfig, registry};
use journal::{Journal, Session};
use linkspan::{AUTO, convert};
use tokio::runtime::Runtime;

use super::replay;
use crate::cli::ShowArgs;
use crate::exit::{self, Failure, printable};
use crate::store::{self, OpenMode};
use crate::streams::InputStream;
use crate::suggestions;

/// Leaves at once when everything fits on the screen, shows colours, and leaves the text there.
const DEFAULT_PAGER: &str = "less -FRX";
/// The same for `PAGER=less` without flags, as `git` does it.
const LESS_FLAGS: &str = "FRX";

pub(crate) fn run(args: &ShowArgs) -> Result<(), Failure> {
    if let Some(stored) = StoredSession::find(args)? {
        return stored.show(args);
    }
    if args.from != AUTO {
        registry::find_reader(&args.from).map_err(suggestions::source)?;
    }
    let mut input = InputStream::open(args.input.as_deref())?;
    // Before the pager starts, so that errors are not paged.
    let from = if args.from == AUTO {
        input.recognise()?.name
    } else {
        input.watch(&args.from);
        &args.from
    };
    let is_terminal = io::stdout().is_terminal();
    let config = WriterConfig {
        // A call that is still open is shown twice, which is of use to a watching user alone.
        live: is_terminal && !input.is_regular(),
        color: args.color.is_wanted(is_terminal),
        ..WriterConfig::default()
    };
    let options = input.options(from, registry::TRANSCRIPT, config);
    let shown = match Pager::start(args) {
        Some(pager) => pager.feed(|pipe| convert(&mut input.bytes, pipe, &options)),
        None => convert(&mut input.bytes, io::stdout(), &options),
    };
    let shown = shown.map_err(|err| InputStream::refused(&input.name, err));
    shown.map(drop)
}

/// A session of the journal.
struct StoredSession {
    runtime: Runtime,
    journal: Arc<dyn Journal>,
    session: Session,
}

impl StoredSession {
    /// The session that is meant, if the input is not a file but the id of one.
    fn find(args: &ShowArgs) -> Result<Option<Self>, Failure> {
        let Some(id) = args.input.as_deref().filter(|it| !it.exists()) else {
            return Ok(None);
        };
        let Some(id) = id.to_str().filter(|it| *it != "-") else {
            return Ok(None);
        };
        // An id has no dot and no slash, so this is a file; opening it reports that it is missing.
        let missing = match id.contains(['.', '/']) {
            true => Ok(None),
            false => {
                let message = format!("neither a file nor a session is called `{}`", printable(id));
                let hint = format!(
                    "`linkspan sessions` lists sessions, and the last {} characters of an id will do; \
                     check the path if it is a file",
                    store::MIN_PART
                );
                Err(Failure::usage(message, hint))
            }
        };
        // Without a home there is no journal.
        let folder = store::folder(&args.data).ok();
        let Some(folder) = folder.filter(|it| store::exists(it)) else {
            return missing;
        };
        let runtime = store::runtime()?;
        let (journal, session) = runtime.block_on(async {
            let journal = store::open(&folder, None, OpenMode::OrReadOnly).await?;
            let session = store::find(&*journal, id).await?;
            Ok((journal, session))
        })?;
        match session {
            None => missing,
            Some(session) => Ok(Some(Self {
                runtime,
                journal,
                session,
            })),
        }
    }

    fn show(&self, args: &ShowArgs) -> Result<(), Failure> {
        let config = WriterConfig {
            color: args.color.is_wanted(io::stdout().is_terminal()),
            ..WriterConfig::default()
        };
        let write = |out: &mut dyn Write| {
            let journal = Arc::clone(&self.journal);
            let written = replay::write(journal, &self.session, registry::TRANSCRIPT, &config, out);
            self.runtime.block_on(written)
        };
        match Pager::start(args) {
            Some(pager) => pager.feed(|mut pipe| write(&mut *pipe)),
            None => write(&mut io::stdout()),
        }
    }
}

/// A program that shows text page by page.
struct Pager(Child);

impl Pager {
    /// The user's pager, for a terminal and if it starts.
    fn start(args: &ShowArgs) -> Option<Self> {
        if args.no_pager || !io::stdout().is_terminal() {
            return None;
        }
        let chosen = env::var_os("PAGER");
        match chosen.as_deref().map(OsStr::to_str) {
            None => Self::spawn(DEFAULT_PAGER).ok(),
            // Not text: no name of a program that we could say.
            Some(None) => None,
            Some(Some(chosen)) if matches!(chosen.trim(), "" | "cat") => None,
            Some(Some(chosen)) => match Self::spawn(chosen) {
                Ok(pager) => Some(pager),
                Err(err) => {
                    let name = printable(chosen);
                    let failure =
                        Failure::io(&format!("cannot start the pager `{name}`"), &err, None);
                    exit::print_line(&format!("{}, printing without it\n", failure.message()));
                    None
                }
            },
        }
    }

    /// A shell is used only if needed, because it would hide that a program is missing.
    fn spawn(command: &str) -> io::Result<Self> {
        let is_plain = |it: char| it.is_alphanumeric() || " /.,_+=:-".contains(it);
        let mut process = if command.chars().all(is_plain) {
            let mut words = command.split_whitespace();
            let mut process = Command::new(words.next().unwrap_or_default());
            process.args(words);
            process
        } else {
            let mut process = Command::new("sh");
            process.args(["-c", command]);
            process
        };
        if env::var_os("LESS").is_none() {
            process.env("LESS", LESS_FLAGS);
        }
        process.stdin(Stdio::piped()).spawn().map(Self)
    }

    /// Writes to the pager and waits until it is left; how it ends is its own affair.
    fn feed<T>(mut self, write: impl FnOnce(Box<dyn Write>) -> T) -> T {
        // While the pager runs, Ctrl-C belongs to it.
        ctrlc::try_set_handler(|| ()).ok();
        let pipe = self.0.stdin.take();
        let result = write(match pipe {
            Some(pipe) => Box::new(pipe),
            None => Box::new(io::sink()),
        });
        self.0.wait().ok();
        result
    }
}
