//! The page a transcript is written on: lines, their indentation and colour, and the space between blocks.
//!
//! Only a [`SafeText`] string can be put on a page, and only `display_safe` makes one of foreign text.
//! What a sub-agent does stands behind a bar; when agents take turns, a line names the one that follows.

use std::borrow::Cow;

use anstyle::{AnsiColor, Color, Style};
use model::{AskId, ItemId};

use crate::display_safe;
use crate::writers::labels::cut;
use crate::writers::transcript::Place;

pub(super) const PLAIN: Style = Style::new();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const BOLD: Style = Style::new().bold();
pub(super) const RED: Style = color(AnsiColor::Red);
pub(super) const GREEN: Style = color(AnsiColor::Green);
pub(super) const YELLOW: Style = color(AnsiColor::Yellow);
pub(super) const CYAN: Style = color(AnsiColor::Cyan);
pub(super) const MAGENTA: Style = color(AnsiColor::Magenta);

const fn color(color: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(color)))
}

/// Maximum nesting shown by bars; deeper sub-agents share the last one.
const MAX_BARS: usize = 8;

/// Text that a terminal only shows.
#[derive(Clone, Debug)]
pub(super) struct SafeText<'a>(Cow<'a, str>);

impl<'a> From<&'a str> for SafeText<'a> {
    fn from(text: &'a str) -> Self {
        Self(display_safe(text))
    }
}

impl From<String> for SafeText<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(display_safe(&text).into_owned()))
    }
}

impl SafeText<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = SafeText<'_>> {
        self.0.split('\n').map(|line| SafeText(Cow::Borrowed(line)))
    }

    /// Spaces at the end of a line are only ever in the way.
    pub(super) fn trim_end(&self) -> SafeText<'_> {
        SafeText(Cow::Borrowed(self.0.trim_end_matches(' ')))
    }

    /// Like [`SafeText::cut`], with the number of missing characters.
    pub(super) fn cut_counted(&self, n: usize) -> SafeText<'_> {
        let mut ends = self.0.char_indices().skip(n);
        match ends.next() {
            Some((end, _)) => {
                let n_more = 1 + ends.count();
                let head = &self.0[..end];
                SafeText(Cow::Owned(format!("{head}… ({n_more} more characters)")))
            }
            None => SafeText(Cow::Borrowed(&self.0)),
        }
    }

    /// The first `n` characters, and an ellipsis when there are more.
    pub(super) fn cut(&self, n: usize) -> SafeText<'_> {
        SafeText(cut(&self.0, n))
    }
}

/// What a block is: decides how much space goes before it, and what may be added under it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum BlockKind {
    Header,
    Text,
    Call(ItemId<'static>),
    /// With the call it is about.
    Ask(AskId<'static>, Option<ItemId<'static>>),
    Notice,
    End,
}

#[derive(Clone, Debug)]
struct TextBlock {
    kind: BlockKind,
    path: Vec<ItemId<'static>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct TerminalPage {
    color: bool,
    last: Option<TextBlock>,
    depth: usize,
    /// The calls that started the agents now at work, with a name for each.
    agents: Vec<(ItemId<'static>, String)>,
}

impl TerminalPage {
    pub(super) fn new(color: bool) -> Self {
        Self {
            color,
            ..Self::default()
        }
    }

    /// Gives the agent that a call starts a name to be called by.
    pub(super) fn name_agent(&mut self, call: &ItemId<'_>, name: &str) {
        if !self.agents.iter().any(|(it, _)| it == call) {
            let call = call.clone().into_owned();
            self.agents.push((call, name.to_owned()));
        }
    }

    pub(super) fn forget_agent(&mut self, call: &ItemId<'_>) {
        self.agents.retain(|(it, _)| it != call);
    }

    /// True when nothing but the call itself and what it caused was written since it was.
    pub(super) fn is_under(&self, call: &ItemId<'_>) -> bool {
        self.last.as_ref().is_some_and(|last| {
            let is_about = match &last.kind {
                BlockKind::Call(it) | BlockKind::Ask(_, Some(it)) => it == call,
                BlockKind::Header
                | BlockKind::Text
                | BlockKind::Ask(_, None)
                | BlockKind::Notice
                | BlockKind::End => false,
            };
            is_about || last.path.contains(call)
        })
    }

    pub(super) fn is_last(&self, kind: &BlockKind) -> bool {
        self.last.as_ref().is_some_and(|last| last.kind == *kind)
    }

    /// Begins a block.
    pub(super) fn begin(&mut self, kind: BlockKind, place: &mut Place<'_>) {
        self.separate(&kind, place);
        // The bars only show how deep an agent is, not which one it is.
        if self.changes_agent(place.path) {
            self.depth = place.path.len() - 1;
            let name = place.path.last().and_then(|call| self.agent_name(call));
            let line = format!("↳ {}", name.unwrap_or("sub-agent"));
            self.line("", DIM, line, place.out);
        }
        self.resume(kind, place.path);
    }

    /// Continues the last block: what follows belongs to `path`.
    pub(super) fn resume(&mut self, kind: BlockKind, path: &[ItemId<'static>]) {
        self.depth = path.len();
        let path = path.to_vec();
        self.last = Some(TextBlock { kind, path });
    }

    /// What follows belongs to the agent of this path.
    pub(super) fn stand_at(&mut self, path: &[ItemId<'_>]) {
        self.depth = path.len();
    }

    /// A whole line in one style.
    pub(super) fn line<'t>(
        &self,
        indent: &str,
        style: Style,
        text: impl Into<SafeText<'t>>,
        out: &mut Vec<u8>,
    ) {
        self.start(indent, out);
        self.put(style, text.into().trim_end(), out);
        self.end_line(out);
    }

    /// Begins a line: the bars of the agents around it, and the indentation.
    pub(super) fn start(&self, indent: &str, out: &mut Vec<u8>) {
        for _ in 0..self.depth.min(MAX_BARS) {
            out.extend(b"  ");
            self.put(DIM, "┃", out);
            out.push(b' ');
        }
        out.extend(indent.as_bytes());
    }

    pub(super) fn put<'t>(&self, style: Style, text: impl Into<SafeText<'t>>, out: &mut Vec<u8>) {
        let text = text.into();
        let text = text.as_str();
        match !self.color || style.is_plain() || text.is_empty() {
            true => out.extend(text.as_bytes()),
            false => put!(out, "{style}{text}{style:#}"),
        }
    }

    pub(super) fn end_line(&self, out: &mut Vec<u8>) {
        // An indentation that nothing follows is not wanted either.
        while out.last() == Some(&b' ') {
            out.pop();
        }
        out.push(b'\n');
    }

    /// Writes an empty line between two blocks, unless they belong together.
    fn separate(&mut self, kind: &BlockKind, place: &mut Place<'_>) {
        let Some(last) = &self.last else { return };
        // Notices often come in groups, and a retry is one line.
        let are_notices = *kind == BlockKind::Notice && last.kind == BlockKind::Notice;
        let is_first_of_agent = matches!((&last.kind, place.path.last()), (BlockKind::Call(it), Some(call)) if it == call);
        if are_notices && *place.path == *last.path || is_first_of_agent {
            return;
        }
        let common = place
            .path
            .iter()
            .zip(&last.path)
            .take_while(|(a, b)| a == b);
        self.depth = common.count();
        self.start("", place.out);
        self.end_line(place.out);
    }

    fn changes_agent(&self, path: &[ItemId<'_>]) -> bool {
        let (Some(last), Some(call)) = (&self.last, path.last()) else {
            return !path.is_empty();
        };
        !last.path.starts_with(path) && !matches!(&last.kind, BlockKind::Call(it) if it == call)
    }

    pub(super) fn agent_name(&self, call: &ItemId<'_>) -> Option<&str> {
        let agent = self.agents.iter().find(|(it, _)| it == call);
        agent.map(|(_, name)| &**name)
    }
}
