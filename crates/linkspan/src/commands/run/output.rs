//! The output of a run: a terminal with a moving status line, or a pipe.

use std::env;
use std::io::{self, IsTerminal, StdoutLock, Write};

use formats::{WriterConfig, registry};
use model::{Body, Event, Sink, Writer};
use runner::Mode;

use super::status_line::StatusLine;
use crate::cli::RunArgs;
use crate::exit::Failure;
use crate::suggestions;

/// Maximum output held back during a question; past it the transcript continues.
const MAX_HELD: usize = 1024 * 1024;

/// Where the events go.
pub(super) struct RunOutput {
    writer: Box<dyn Writer>,
    /// Written, and not yet allowed to be shown.
    bytes: Vec<u8>,
    stdout: StdoutLock<'static>,
    pub(super) view: Option<StatusLine>,
    pub(super) is_gone: bool,
    /// The tools that were not allowed.
    denied: Vec<String>,
}

impl RunOutput {
    pub(super) fn new(args: &RunArgs) -> Result<Self, Failure> {
        let is_terminal = io::stdout().is_terminal();
        let color = args.color.is_wanted(is_terminal);
        let config = WriterConfig {
            profile: args.profile.clone(),
            live: is_terminal || args.to != registry::TRANSCRIPT,
            began: None,
            color,
            served: None,
        };
        let writer = registry::writer(&args.to, &config).map_err(suggestions::target)?;
        let is_dumb = env::var_os("TERM").is_some_and(|it| it == "dumb");
        let is_watched = is_terminal && args.to == registry::TRANSCRIPT && !is_dumb;
        Ok(Self {
            writer,
            bytes: Vec::new(),
            // Locked once: the lock of each write would be taken for every event.
            stdout: io::stdout().lock(),
            view: is_watched.then(|| StatusLine::new(color)),
            is_gone: false,
            denied: Vec::new(),
        })
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let Self { bytes, stdout, .. } = self;
        if self.is_gone {
            bytes.clear();
            return Ok(());
        }
        // A question is open; output is held back until it is answered.
        let is_paused = self.view.as_ref().is_some_and(StatusLine::is_paused);
        if is_paused && bytes.len() < MAX_HELD {
            return Ok(());
        }
        let written = match &mut self.view {
            Some(view) => view.print(bytes, stdout),
            None if bytes.is_empty() => Ok(()),
            None => stdout.write_all(bytes).and_then(|()| stdout.flush()),
        };
        bytes.clear();
        written.map_err(|err| Failure::write("stdout", &err))
    }

    pub(super) fn tick(&mut self) -> Result<(), Failure> {
        let view = self.view.as_mut();
        let ticked = view.map_or(Ok(()), |it| it.tick(&mut self.stdout));
        ticked.map_err(|err| Failure::write("stdout", &err))
    }

    pub(super) fn erase(&mut self) -> Result<(), Failure> {
        let view = self.view.as_mut();
        let erased = view.map_or(Ok(()), |it| it.erase(&mut self.stdout));
        erased.map_err(|err| Failure::write("stdout", &err))
    }

    pub(super) fn pause(&mut self, is_paused: bool) {
        if let Some(view) = &mut self.view {
            view.pause(is_paused);
        }
    }

    /// True when the transcript on the screen ends with this question.
    pub(super) fn ends_with(&self, ask: &str) -> bool {
        self.view.as_ref().is_some_and(|it| it.ends_with(ask))
    }

    /// What to say about the tools that were not allowed; those of `list` were, and a list is the whole
    /// list.
    pub(super) fn denied(&self, list: &[String], mode: Mode) -> String {
        if self.denied.is_empty() {
            return String::new();
        }
        let hint = match mode {
            // No list allows a change there.
            Mode::Plan => {
                "`plan` changes nothing, whatever is allowed; `--permissions` has other modes"
                    .to_owned()
            }
            Mode::Deny | Mode::Ask | Mode::AcceptEdits | Mode::Listed | Mode::Allow => format!(
                "`{}` allows it, `--permissions` says what else may be done",
                self.flags(list)
            ),
        };
        let denied = self.denied.join(", ");
        formats::display_safe(&format!(
            "linkspan: not allowed: {denied}\n\nhint: {hint}\n"
        ))
        .into_owned()
    }

    /// The flags that allow what was allowed and what was not.
    fn flags(&self, list: &[String]) -> String {
        let is_special = |it: char| it.is_whitespace() || "()*'\"".contains(it);
        let flag = |tool: &String| match tool.contains(is_special) {
            true => format!("--allow \"{tool}\""),
            false => format!("--allow {tool}"),
        };
        let tools = list.iter().chain(&self.denied);
        tools.map(flag).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn end(&mut self) -> Result<(), Failure> {
        // Otherwise `flush` would hold the end back behind an open question.
        self.pause(false);
        self.writer.end(&mut self.bytes);
        self.erase()?;
        self.flush()
    }
}

impl Sink for RunOutput {
    fn event(&mut self, event: &Event<'_>) {
        let n_before = self.bytes.len();
        self.writer.event(event, &mut self.bytes);
        if let Some(view) = &mut self.view {
            if self.bytes.len() > n_before {
                view.transcript_grew();
            }
            view.event(event);
        }
        if let Body::RunEnded(ended) = &event.body {
            for denial in &ended.denials {
                if !self.denied.iter().any(|it| *it == denial.tool) {
                    self.denied.push(denial.tool.to_string());
                }
            }
        }
    }
}
