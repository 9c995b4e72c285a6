//! What a terminal shows while an agent works: the transcript, and under it one line that moves.
//!
//! The line says what is being done and for how long. It is drawn only where the transcript stands at
//! the start of a line, and taken away before anything else is written.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use formats::display_safe;
use model::{Body, Event, Item};
use unicode_width::UnicodeWidthChar;

/// How often the line moves.
pub(super) const TICK: Duration = Duration::from_millis(120);
/// Things that end sooner are not worth a line.
const PATIENCE: Duration = Duration::from_millis(300);
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const ERASE: &str = "\r\x1b[2K";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// The line at the bottom, and what it knows.
#[derive(Debug)]
pub(super) struct StatusLine {
    calls: Vec<ShownCall>,
    /// When the model was last active, while a run is open.
    waiting_since: Option<Instant>,
    has_begun: bool,
    /// The ask that the transcript ends with.
    last_ask: Option<String>,
    /// A question is open: hide the status line.
    is_paused: bool,
    is_line_start: bool,
    is_drawn: bool,
    n_ticks: usize,
    color: bool,
}

#[derive(Debug)]
struct ShownCall {
    id: String,
    title: String,
    since: Instant,
}

impl ShownCall {
    fn restart(&mut self) {
        self.since = Instant::now();
    }
}

impl StatusLine {
    pub(super) fn new(color: bool) -> Self {
        Self {
            calls: Vec::new(),
            // An agent takes its time to start.
            waiting_since: Some(Instant::now()),
            has_begun: false,
            last_ask: None,
            is_paused: false,
            is_line_start: true,
            is_drawn: false,
            n_ticks: 0,
            color,
        }
    }

    /// Updates the current activity.
    pub(super) fn event(&mut self, event: &Event<'_>) {
        if let Body::AskOpened(ask) = &event.body {
            self.last_ask = Some(ask.id.to_string());
        }
        match &event.body {
            Body::RunStarted(_) => {
                self.has_begun = true;
                self.waiting_since = Some(Instant::now());
            }
            Body::RunEnded(_) => {
                self.waiting_since = None;
                self.calls.clear();
            }
            Body::ItemOpened(item) | Body::ItemUpdated(item) => self.opened(item),
            Body::ItemClosed(closed) => {
                let id = closed.item.id().as_str();
                self.calls.retain(|it| it.id != id);
                self.restart();
            }
            Body::ItemDelta(_) => self.restart(),
            // Time spent waiting for an answer does not count towards the duration.
            Body::AskSettled(_) => self.calls.iter_mut().for_each(ShownCall::restart),
            Body::AskOpened(_)
            | Body::SessionBound(_)
            | Body::UsageReported(_)
            | Body::NoticeRaised(_)
            | Body::FrameUnmapped(_) => (),
        }
    }

    fn opened(&mut self, item: &Item<'_>) {
        let Item::Tool(tool) = item else { return };
        let title = format!("{}  {}", tool.name, tool.class.title);
        let id = tool.id.as_str();
        match self.calls.iter_mut().find(|it| it.id == id) {
            Some(call) => call.title = title,
            None => self.calls.push(ShownCall {
                id: id.to_owned(),
                title,
                since: Instant::now(),
            }),
        }
    }

    fn restart(&mut self) {
        if self.waiting_since.is_some() {
            self.waiting_since = Some(Instant::now());
        }
    }

    /// Something was added to the transcript. Much of what an agent tells is not shown, and what was shown
    /// last stays the last.
    pub(super) fn transcript_grew(&mut self) {
        self.last_ask = None;
    }

    /// True when the transcript ends with this question.
    pub(super) fn ends_with(&self, ask: &str) -> bool {
        self.last_ask.as_deref() == Some(ask)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    pub(super) fn pause(&mut self, is_paused: bool) {
        self.last_ask = None;
        self.is_paused = is_paused;
    }

    /// Writes a piece of the transcript.
    pub(super) fn print(&mut self, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.erase(out)?;
        self.is_line_start = bytes.ends_with(b"\n");
        out.write_all(bytes)?;
        out.flush()
    }

    /// Moves the line.
    pub(super) fn tick(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.n_ticks += 1;
        let line = self.line(Instant::now(), columns());
        if line.is_empty() || !self.is_line_start || self.is_paused {
            return self.erase(out);
        }
        let (on, off) = if self.color { (DIM, PLAIN) } else { ("", "") };
        write!(out, "{ERASE}{on}{line}{off}")?;
        self.is_drawn = true;
        out.flush()
    }

    /// Takes the line away.
    pub(super) fn erase(&mut self, out: &mut impl Write) -> io::Result<()> {
        if std::mem::take(&mut self.is_drawn) {
            out.write_all(ERASE.as_bytes())?;
            out.flush()?;
        }
        Ok(())
    }

    fn line(&self, now: Instant, columns: usize) -> String {
        let (what, since) = match (&*self.calls, self.waiting_since) {
            ([call], _) => (call.title.clone(), call.since),
            ([call, rest @ ..], _) => (
                format!("{} and {} more", call.title, rest.len()),
                call.since,
            ),
            ([], Some(since)) if self.has_begun => ("working".to_owned(), since),
            ([], Some(since)) => ("starting".to_owned(), since),
            ([], None) => return String::new(),
        };
        let took = now.saturating_duration_since(since);
        if took < PATIENCE {
            return String::new();
        }
        let mark = FRAMES[self.n_ticks % FRAMES.len()];
        let took = format!(" · {}s", took.as_secs());
        // Some room on the right: a terminal that is full to the last column wraps the line.
        let room = columns.saturating_sub(took.chars().count() + 4);
        format!("{mark} {}{took}", cut(&display_safe(&what), room))
    }
}

/// The first line of `text`, cut to so many columns.
fn cut(text: &str, columns: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut width = 0;
    let mut kept = String::new();
    for it in line.chars() {
        // Wide characters take two columns, combining ones none.
        width += it.width().unwrap_or_default();
        if width > columns {
            kept.push('…');
            break;
        }
        kept.push(it);
    }
    kept
}

fn columns() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(title: &str, since: Instant) -> ShownCall {
        ShownCall {
            id: title.to_owned(),
            title: title.to_owned(),
            since,
        }
    }

    #[test]
    fn the_status_line_shows_the_call_and_its_duration() {
        let began = Instant::now();
        let mut view = StatusLine::new(false);
        view.waiting_since = Some(began);
        assert_eq!(
            view.line(began + Duration::from_secs(1), 80),
            "⠋ starting · 1s"
        );
        view.has_begun = true;
        view.waiting_since = Some(began);
        let now = began + Duration::from_secs(3);
        assert_eq!(view.line(began, 80), "");
        assert_eq!(view.line(now, 80), "⠋ working · 3s");
        view.calls = vec![call("Bash  npm test", began)];
        assert_eq!(view.line(now, 80), "⠋ Bash  npm test · 3s");
        view.calls.push(call("Read  a", began));
        assert_eq!(view.line(now, 80), "⠋ Bash  npm test and 1 more · 3s");
        assert_eq!(view.line(now, 20), "⠋ Bash  npm t… · 3s");
    }

    #[test]
    fn a_title_cannot_control_the_terminal() {
        let began = Instant::now();
        let mut view = StatusLine::new(false);
        view.calls = vec![call("Bash  a\x1b[2Jb\nc", began)];
        let line = view.line(began + Duration::from_secs(1), 80);
        assert!(!line.contains('\x1b') && !line.contains('\n'), "{line:?}");
    }

    #[test]
    fn a_question_stays_the_last_until_something_else_is_shown() {
        let ask = r#"{"v":1,"seq":1,"session":"s","engine":"e","origin":"agent","type":"ask.opened","data":{"id":"a","kind":"permission","tool":"Edit","title":"Edit x"}}"#;
        let usage = r#"{"v":1,"seq":2,"session":"s","engine":"e","origin":"agent","type":"usage.reported","data":{"scope":"call","basis":"delta"}}"#;
        let mut view = StatusLine::new(false);
        let (_, reader) = formats::registry::find_reader("linkspan").unwrap();
        let mut reader = reader(&formats::ReaderConfig::default());
        for line in [ask, usage] {
            reader.frame(model::Frame::Data(line.as_bytes()), &mut |event: &Event<
                '_,
            >| {
                view.event(event)
            });
        }
        assert!(view.ends_with("a"));
        view.transcript_grew();
        assert!(!view.ends_with("a"));
    }

    #[test]
    fn the_status_line_is_erased_before_other_output() {
        let mut view = StatusLine::new(false);
        let mut out = Vec::new();
        view.calls = vec![call("Bash  ls", Instant::now() - Duration::from_secs(1))];
        view.tick(&mut out).unwrap();
        view.print(b"hello", &mut out).unwrap();
        // In the middle of a line there is no place for it.
        view.tick(&mut out).unwrap();
        view.print(b"\n", &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\r\x1b[2K⠙ Bash  ls · 1s\r\x1b[2Khello\n"
        );
    }
}
