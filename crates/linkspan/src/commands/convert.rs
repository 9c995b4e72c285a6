//! `linkspan convert`: opens the streams, converts, and says what was lost.
//!
//! The first Ctrl-C ends the output as if the input had been cut there, so that a consumer still
//! gets its one end; the second leaves at once.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{process, thread};

use formats::{WriterConfig, detect, registry};
use indicatif::{ProgressBar, ProgressStyle};
use linkspan::{AUTO, Conversion, Error, Report, each_chunk};
use model::End;
use serde::Serialize;

use crate::cli::ConvertArgs;
use crate::exit::{self, Code, Failure};
use crate::streams::{InputStream, OutputStream};
use crate::suggestions;

/// Show progress for files above this size.
const SHOW_PROGRESS: u64 = 32 * 1024 * 1024;

pub(crate) fn run(args: &ConvertArgs) -> Result<(), Failure> {
    // Before the output is opened: a mistyped name must not empty a file.
    check(args)?;
    let mut input = InputStream::open(args.input.as_deref())?;
    let from = source(args, &mut input)?;
    let OutputStream {
        name,
        bytes,
        is_regular,
        is_terminal,
    } = OutputStream::open(args.output.as_deref(), &input)?;
    let progress = progress(&input, is_terminal);
    let config = WriterConfig {
        profile: args.profile.clone(),
        // A recording is not live, and transient events must not end up in a file.
        // A transcript is watched on a terminal only.
        live: !input.is_regular()
            && !is_regular
            && (is_terminal || args.to != registry::TRANSCRIPT),
        color: args.color.is_wanted(is_terminal),
        ..WriterConfig::default()
    };
    let options = input.options(from, &args.to, config);
    let conversion = Conversion::new(bytes, &options).map_err(suggestions::target)?;
    let conversion = SharedConversion::new(conversion);
    conversion.end_on_interrupt();

    let mut looks_like = None;
    let mut is_first = true;
    let read = each_chunk(&mut input.bytes, |chunk| {
        if std::mem::take(&mut is_first) {
            // For the hint about a foreign input: when that is known, its beginning is gone.
            looks_like = detect::stored_by(chunk);
        }
        if let Some(progress) = &progress {
            progress.inc(chunk.len() as u64);
        }
        conversion.push(chunk)
    });
    if let Some(progress) = progress {
        progress.finish_and_clear();
    }
    let check_foreign = |report: &Report| match report.is_foreign {
        true => Err(suggestions::foreign(
            &input.name,
            from,
            report.n_frames,
            looks_like,
        )),
        false => Ok(()),
    };
    // Before the end is written, so that a foreign input does not look like an empty run.
    if let (Ok(()), Some(report)) = (&read, conversion.report()) {
        check_foreign(&report)?;
    }
    let report = match read {
        Ok(()) => conversion.end(&End::default()),
        Err(Error::Read(err)) => {
            // Everything read so far is intact; the output ends where the input broke off.
            conversion.end(&End::default()).ok();
            return Err(InputStream::failure(&input.name, &err));
        }
        Err(Error::Write(err)) => Err(err),
        Err(err @ (Error::Format(_) | Error::Detect(_))) => {
            return Err(InputStream::refused(&input.name, err));
        }
    };
    let report = report.map_err(|err| Failure::write(&name, &err))?;
    // The last line of an input without a line break is read at its end.
    check_foreign(&report)?;
    if args.report {
        exit::print_line(&report_line(args, from, &report));
    }
    Ok(())
}

fn check(args: &ConvertArgs) -> Result<(), Failure> {
    if args.from != AUTO {
        registry::find_reader(&args.from).map_err(suggestions::source)?;
    }
    let config = WriterConfig {
        profile: args.profile.clone(),
        ..WriterConfig::default()
    };
    registry::writer(&args.to, &config).map_err(suggestions::target)?;
    Ok(())
}

/// The format of the input, as it was named or as it is recognised.
fn source<'a>(args: &'a ConvertArgs, input: &mut InputStream) -> Result<&'a str, Failure> {
    if args.from != AUTO {
        if !args.json {
            input.watch(&args.from);
        }
        return Ok(&args.from);
    }
    let format = input.recognise()?;
    // The JSON report has it too, and its parsers want no other output.
    if !args.json {
        exit::print_line(&format!("linkspan: reading {}\n", format.name));
    }
    Ok(format.name)
}

/// A bar for a long file, where it cannot mix with the output.
fn progress(input: &InputStream, is_terminal: bool) -> Option<ProgressBar> {
    let length = input.length().filter(|it| *it > SHOW_PROGRESS)?;
    if is_terminal || !io::stderr().is_terminal() {
        return None;
    }
    let style = ProgressStyle::with_template(
        "{bar:30} {percent:>3} %  {bytes} of {total_bytes}, {eta} left",
    )
    .expect("the template is well formed");
    Some(ProgressBar::new(length).with_style(style))
}

/// A conversion that Ctrl-C can end while the main thread waits for input.
struct SharedConversion<W>(Arc<Mutex<Option<Conversion<W>>>>);

impl<W: Write + Send + 'static> SharedConversion<W> {
    fn new(conversion: Conversion<W>) -> Self {
        Self(Arc::new(Mutex::new(Some(conversion))))
    }

    fn push(&self, chunk: &[u8]) -> io::Result<()> {
        lock(&self.0).as_mut().map_or(Ok(()), |it| it.push(chunk))
    }

    fn report(&self) -> Option<Report> {
        lock(&self.0).as_ref().map(Conversion::report)
    }

    fn end(&self, end: &End) -> io::Result<Report> {
        // Taken out, so that a Ctrl-C from here on does not end it a second time.
        let mut conversion = lock(&self.0).take().ok_or(io::ErrorKind::Interrupted)?;
        conversion.end(end)?;
        Ok(conversion.report())
    }

    fn end_on_interrupt(&self) {
        let pressed = AtomicBool::new(false);
        let conversion = Arc::clone(&self.0);
        let handler = move || {
            if pressed.swap(true, Ordering::Relaxed) {
                exit_now();
            }
            // The output may be stuck; waiting for it here would make a second Ctrl-C wait too.
            let conversion = Arc::clone(&conversion);
            thread::spawn(move || {
                // Held until the exit: nothing may be written behind the end.
                let mut conversion = lock(&conversion);
                if let Some(conversion) = conversion.as_mut() {
                    let end = End {
                        exit: None,
                        aborted: true,
                    };
                    conversion.end(&end).ok();
                    exit_now();
                }
            });
        };
        // Not installed when interrupts are ignored by our parent, as with `nohup`.
        ctrlc::try_set_handler(handler).ok();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::exit, reason = "the main thread is blocked in a read")]
fn exit_now() -> ! {
    process::exit(i32::from(Code::Interrupted.number()))
}

/// The report in JSON; its fields are documented in `docs/cli.md`.
#[derive(Serialize)]
struct ReportJson<'a> {
    from: &'a str,
    to: &'a str,
    profile: Option<&'a str>,
    events: u64,
    bytes_read: u64,
    bytes_written: u64,
    losses: Vec<Loss>,
}

#[derive(Serialize)]
struct Loss {
    what: &'static str,
    count: u64,
}

fn report_line(args: &ConvertArgs, from: &str, report: &Report) -> String {
    if args.json {
        let losses = report.losses.iter();
        let line = ReportJson {
            from,
            to: &args.to,
            profile: args.profile.as_deref(),
            events: report.n_events,
            bytes_read: report.bytes_read,
            bytes_written: report.bytes_written,
            losses: losses.map(|(what, count)| Loss { what, count }).collect(),
        };
        return exit::json_lines([line]);
    }
    let mut text = format!("{from} to {}: {} events, ", args.to, report.n_events);
    if report.losses.is_empty() {
        text.push_str("nothing was lost\n");
        return text;
    }
    text.push_str(&format!("no place in {} for\n", args.to));
    for (what, count) in report.losses.iter() {
        text.push_str(&format!("{count:>8}  {what}\n"));
    }
    text
}
