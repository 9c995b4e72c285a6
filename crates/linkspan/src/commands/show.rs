//! `linkspan show`: a recording or a session as a transcript, through a pager on a terminal.

use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use formats::{ReaderConfig, WriterConfig, registry};
use journal::{Journal, Session};
use linkspan::{AUTO, Error, Options, convert};
use tokio::runtime::Runtime;

use super::replay;
use crate::cli::ShowArgs;
use crate::exit::{self, Failure, printable};
use crate::streams::InputStream;
use crate::{store, suggestions};

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
    let pager = if is_terminal && !args.no_pager {
        Pager::start()
    } else {
        None
    };
    let options = options(args, from, &input, is_terminal);
    let result = match pager {
        Some(pager) => pager.feed(|pipe| convert(&mut input.bytes, pipe, &options)),
        None => convert(&mut input.bytes, io::stdout(), &options),
    };
    match result {
        Ok(_) => Ok(()),
        Err(Error::Read(err)) => Err(InputStream::failure(&input.name, &err)),
        Err(Error::Write(err)) => Err(Failure::write("stdout", &err)),
        Err(Error::Format(err)) => Err(suggestions::target(err)),
        Err(Error::Detect(why)) => Err(suggestions::undetected_format(&input.name, why)),
    }
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
        // What has a dot or a slash in it must be a file, and is said to be missing as such.
        let missing = match id.contains(['.', '/']) {
            true => Ok(None),
            false => Err(Failure::usage(
                format!("neither a file nor a session is called `{}`", printable(id)),
                "`linkspan sessions` lists sessions; check the path if it is a file",
            )),
        };
        // Without a home there is no journal.
        let folder = store::folder(&args.data).ok();
        let Some(folder) = folder.filter(|it| store::exists(it)) else {
            return missing;
        };
        let runtime = store::runtime()?;
        let (journal, session) = runtime.block_on(async {
            let journal = store::open_read_only(&folder, None).await?;
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
        let is_terminal = io::stdout().is_terminal();
        let config = WriterConfig {
            color: args.color.is_wanted(is_terminal),
            ..WriterConfig::default()
        };
        let write = |out: &mut dyn Write| {
            let journal = Arc::clone(&self.journal);
            let written = replay::write(journal, &self.session, registry::TRANSCRIPT, &config, out);
            self.runtime.block_on(written)
        };
        let is_paged = is_terminal && !args.no_pager;
        match is_paged.then(Pager::start).flatten() {
            Some(pager) => pager.feed(|mut pipe| write(&mut *pipe)),
            None => write(&mut io::stdout()),
        }
    }
}

fn options(args: &ShowArgs, from: &str, input: &InputStream, is_terminal: bool) -> Options {
    let began = Some(input.began());
    Options {
        from: from.to_owned(),
        to: registry::TRANSCRIPT.to_owned(),
        reader: ReaderConfig {
            started_at: began,
            ..ReaderConfig::default()
        },
        writer: WriterConfig {
            profile: None,
            // Calls that are told twice are for somebody who watches.
            live: is_terminal && !input.is_regular(),
            began,
            color: args.color.is_wanted(is_terminal),
            served: None,
        },
    }
}

/// A program that shows text page by page.
struct Pager(Child);

impl Pager {
    /// The pager the user wants, if there is one and it starts.
    fn start() -> Option<Self> {
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
                    let said = Failure::io(&format!("cannot start the pager `{name}`"), &err, None);
                    exit::print_line(&format!("{}, printing without it\n", said.message()));
                    None
                }
            },
        }
    }

    /// Only what needs a shell gets one: it would not tell that a program is missing.
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
        // Ctrl-C is the pager's to understand while it is there.
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
