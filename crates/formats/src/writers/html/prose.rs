//! Markdown to HTML, with what a stranger may use: no HTML of its own, no pictures, no odd links.
//!
//! Headings are lowered to stand under the page's own. A line end in the text is one on the page:
//! models write for chats.

use pulldown_cmark::{
    Alignment, CodeBlockKind, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd,
};

use super::parts::escape;
use crate::display_safe;

const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

pub(super) fn render(text: &str, out: &mut Vec<u8>) {
    let safe = display_safe(text);
    let mut page = HtmlProse {
        out,
        links: Vec::new(),
        cells: Vec::new(),
        cell: 0,
        in_head: false,
    };
    for event in Parser::new_ext(&safe, OPTIONS) {
        page.event(event);
    }
}

/// An address as a link, if it may be one.
pub(super) fn link(url: &str, out: &mut Vec<u8>) {
    let text = escape(url);
    match is_allowed(url) {
        true => put!(out, "{}{text}</a>", anchor(url)),
        false => put!(out, "<code>{text}</code>"),
    }
}

fn anchor(url: &str) -> String {
    format!("<a href=\"{}\" rel=\"noopener noreferrer\">", escape(url))
}

/// Only addresses that lead to a page or a letter.
fn is_allowed(url: &str) -> bool {
    let starts = |scheme: &str| {
        let start = url.get(..scheme.len());
        start.is_some_and(|it| it.eq_ignore_ascii_case(scheme))
    };
    let is_plain = !url.contains(|it: char| it.is_whitespace() || it.is_control());
    is_plain && (starts("https://") || starts("http://") || starts("mailto:"))
}

struct HtmlProse<'a> {
    out: &'a mut Vec<u8>,
    /// What closes each open link and picture.
    links: Vec<String>,
    cells: Vec<Alignment>,
    cell: usize,
    in_head: bool,
}

impl HtmlProse<'_> {
    fn put(&mut self, markup: &str) {
        self.out.extend_from_slice(markup.as_bytes());
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.put(&escape(&text)),
            Event::Code(text) => put!(self.out, "<code>{}</code>", escape(&text)),
            Event::SoftBreak | Event::HardBreak => self.put("<br>\n"),
            Event::Rule => self.put("<hr>\n"),
            Event::TaskListMarker(true) => self.put("☑ "),
            Event::TaskListMarker(false) => self.put("☐ "),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.put("<p>"),
            Tag::Heading { level, .. } => put!(self.out, "<{}>", heading(level)),
            Tag::BlockQuote(_) => self.put("<blockquote>\n"),
            Tag::CodeBlock(kind) => {
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => info.split_whitespace().next().unwrap_or(""),
                    CodeBlockKind::Indented => "",
                };
                self.put("<pre class=\"code\" tabindex=\"0\" aria-label=\"Code");
                if !language.is_empty() {
                    put!(self.out, ", {}", escape(language));
                }
                self.put("\">\n");
            }
            Tag::HtmlBlock | Tag::MetadataBlock(_) => self.put("<p class=\"markup\">"),
            Tag::List(None) => self.put("<ul>\n"),
            Tag::List(Some(first)) => {
                put!(self.out, "<ol start=\"{}\">\n", first.min(999_999_999));
            }
            Tag::Item => self.put("<li>"),
            Tag::Table(cells) => {
                self.cells = cells;
                self.put("<div class=\"table\"><table>\n");
            }
            Tag::TableHead => {
                self.in_head = true;
                self.cell = 0;
                self.put("<thead><tr>");
            }
            Tag::TableRow => {
                self.cell = 0;
                self.put("<tr>");
            }
            Tag::TableCell => self.cell(),
            Tag::Emphasis => self.put("<em>"),
            Tag::Strong => self.put("<strong>"),
            Tag::Strikethrough => self.put("<s>"),
            Tag::Superscript => self.put("<sup>"),
            Tag::Subscript => self.put("<sub>"),
            Tag::DefinitionList => self.put("<dl>\n"),
            Tag::DefinitionListTitle => self.put("<dt>"),
            Tag::DefinitionListDefinition => self.put("<dd>"),
            Tag::FootnoteDefinition(_) => self.put("<div>"),
            Tag::Link {
                link_type,
                dest_url,
                ..
            } => {
                let url = match link_type {
                    // The parser gives the bare address.
                    LinkType::Email => format!("mailto:{dest_url}"),
                    _ => dest_url.into_string(),
                };
                self.link("", &url);
            }
            // A picture would be a request to a foreign host, which the policy forbids.
            Tag::Image { dest_url, .. } => self.link("picture: ", &dest_url),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::MetadataBlock(_) => self.put("</p>\n"),
            TagEnd::Heading(level) => put!(self.out, "</{}>\n", heading(level)),
            TagEnd::BlockQuote(_) => self.put("</blockquote>\n"),
            TagEnd::CodeBlock => self.put("</pre>\n"),
            TagEnd::List(false) => self.put("</ul>\n"),
            TagEnd::List(true) => self.put("</ol>\n"),
            TagEnd::Item => self.put("</li>\n"),
            // A head is always followed by a body, even an empty one.
            TagEnd::Table => self.put("</tbody>\n</table></div>\n"),
            TagEnd::TableHead => {
                self.in_head = false;
                self.put("</tr></thead>\n<tbody>\n");
            }
            TagEnd::TableRow => self.put("</tr>\n"),
            TagEnd::TableCell if self.in_head => self.put("</th>"),
            TagEnd::TableCell => self.put("</td>"),
            TagEnd::Emphasis => self.put("</em>"),
            TagEnd::Strong => self.put("</strong>"),
            TagEnd::Strikethrough => self.put("</s>"),
            TagEnd::Superscript => self.put("</sup>"),
            TagEnd::Subscript => self.put("</sub>"),
            TagEnd::DefinitionList => self.put("</dl>\n"),
            TagEnd::DefinitionListTitle => self.put("</dt>\n"),
            TagEnd::DefinitionListDefinition => self.put("</dd>\n"),
            TagEnd::FootnoteDefinition => self.put("</div>\n"),
            TagEnd::Link | TagEnd::Image => {
                let close = self.links.pop().unwrap_or_default();
                self.put(&close);
            }
        }
    }

    fn cell(&mut self) {
        let class = match self.cells.get(self.cell) {
            Some(Alignment::Right) => " class=\"right\"",
            Some(Alignment::Center) => " class=\"center\"",
            Some(Alignment::None | Alignment::Left) | None => "",
        };
        self.cell += 1;
        let tag = if self.in_head { "th" } else { "td" };
        put!(self.out, "<{tag}{class}>");
    }

    /// Opens a link; a disallowed one, or one inside another link, is written as text.
    fn link(&mut self, what: &str, url: &str) {
        // HTML has no links inside of links.
        let is_inside = self.links.iter().any(|it| it == "</a>");
        if is_allowed(url) && !is_inside {
            self.put(&anchor(url));
            self.links.push("</a>".to_owned());
        } else {
            self.links.push(format!(" <code>{}</code>", escape(url)));
        }
        self.put(what);
    }
}

fn heading(level: HeadingLevel) -> &'static str {
    match level {
        HeadingLevel::H1 => "h3",
        HeadingLevel::H2 => "h4",
        HeadingLevel::H3 => "h5",
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => "h6",
    }
}
