//! Calls of tools that the provider defines: searches, MCP, shells, patches.
//!
//! The whole item travels beside the events, in `extra`, because each type has fields of its own.

use std::borrow::Cow;

use model::{Class, ItemId, Location, Mcp, Part, Raw, Status, Text, Tool, ToolKind, ToolResult};

use super::output::status;
use super::patch::patch;
use super::{FrameContext, OpenResponses};
use crate::readers::arguments::arguments;
use crate::readers::content::{self, ContentPiece};
use crate::tools;
use crate::wire::lenient::{Any, List, Str};
use crate::wire::openresponses as wire;

/// Under this name the provider's own item stands in `extra`.
const ITEM: &str = "item";

/// True when the provider runs it; a shell or a patch waits for the client.
pub(super) fn is_server_side(item: &wire::Item<'_>) -> bool {
    let name = base_name(item.r#type.as_deref().unwrap_or_default());
    !matches!(name, "shell" | "local_shell" | "apply_patch" | "computer")
}

/// `openai:web_search_call` is a `web_search`.
fn base_name(name: &str) -> &str {
    let name = name.rsplit(':').next().unwrap_or(name);
    name.strip_suffix("_call").unwrap_or(name)
}

impl OpenResponses {
    pub(super) fn hosted<'c>(&self, at: usize, item: &mut wire::Item<'c>) -> Tool<'c> {
        let slot = &self.output.slots[at];
        let server_side = is_server_side(item);
        let kind = item.r#type.take().unwrap_or_default();
        let (name, input, class) = meaning(base_name(&kind), item);
        let id = match item.call_id.0.as_deref().filter(|it| !it.is_empty()) {
            // The client answers by `call_id`; of the provider's own calls only the place is
            // referred to.
            Some(call) if !server_side => call.to_owned(),
            Some(_) | None => slot.id.clone(),
        };
        Tool {
            group: self.group(),
            input,
            server_side,
            ..Tool::new(ItemId::new(id), name, class)
        }
    }

    pub(super) fn open_hosted<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        at: usize,
        tool: Tool<'c>,
        raw: Any<'c>,
    ) {
        self.has_said = true;
        cx.extra.clear();
        cx.keep(ITEM, raw);
        self.output.slots[at].key = Some(tool.id.clone().into_owned());
        self.lifecycle.update(cx, tool.into());
        // `update` emits nothing for a repeated item: its object must not go onto the next event.
        cx.extra.clear();
    }

    pub(super) fn close_hosted<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        at: usize,
        mut tool: Tool<'c>,
        raw: Any<'c>,
        item: &mut wire::Item<'c>,
    ) {
        self.has_said = true;
        let status = match item.error.0 {
            Some(_) => Status::Error,
            None => status(item.status.as_deref()),
        };
        let found = item.output.0.or(item.results.0).or(item.outputs.0);
        let structured = item.results.raw().or(item.outputs.raw());
        let content = match (item.error.0, item.result.0, found) {
            (Some(error), ..) => Some(string(error.get())),
            // An image generation has its picture, in base64, in `result`.
            (None, Some(image), _) => Some(picture(Text::from_json(image))),
            (None, None, Some(found)) => Some(content(Any(Some(found)))),
            (None, None, None) => None,
        };
        let result = content.map(|content| ToolResult {
            structured,
            ..ToolResult::new(content, status == Status::Error)
        });
        cx.extra.clear();
        cx.keep(ITEM, raw);
        self.output.slots[at].key = None;
        // The input is whole now: most consumers want it before the result.
        self.lifecycle.update(cx, tool.clone().into());
        tool.result = result;
        self.lifecycle.close_whole(cx, tool.into(), status);
        cx.extra.clear();
    }
}

/// What a hosted call is called, was given, and means.
fn meaning<'c>(name: &str, item: &mut wire::Item<'c>) -> (String, Option<Raw<'c>>, Class<'c>) {
    let arguments = item.arguments.filled_text().map(|it| arguments(&it));
    let action: wire::Action<'c> = item.action.parse().unwrap_or_default();
    match name {
        "mcp" => {
            let server = item.server_label.take().unwrap_or_default();
            let tool = item.name.take().unwrap_or_default();
            let mut class = Class::plain(ToolKind::Mcp, Text::new(title(&tool, name)));
            class.mcp = Some(Mcp {
                server: server.clone(),
                tool: tool.clone(),
            });
            (format!("mcp__{server}__{tool}"), arguments, class)
        }
        "web_search" => {
            let input = item.action.raw().or(arguments);
            let mut class = classify(name, input.as_ref());
            if class.query.is_none()
                && let Some(url) = action.url.text()
            {
                class.title = Text::new(format!("Open {url}"));
                class.query = Some(url.into_owned());
            }
            (name.to_owned(), input, class)
        }
        "file_search" => {
            let queries: List<Str<'c>> = item.queries.parse().unwrap_or_default();
            let queries: Vec<_> = queries.0.into_iter().filter_map(|it| it.0).collect();
            let query = queries.join(", ");
            let title = match query.is_empty() {
                true => "Search files".to_owned(),
                false => format!("Search files for {query}"),
            };
            let mut class = Class::plain(ToolKind::Search, Text::new(title));
            class.query = (!query.is_empty()).then(|| Text::new(query));
            let input = item.queries.raw().filter(|_| !queries.is_empty());
            let input = input.map(|it| wrapped("queries", &it));
            (name.to_owned(), input, class)
        }
        "shell" | "local_shell" => {
            let words = |list: List<Str<'c>>, by: &str| {
                let words: Vec<_> = list.0.into_iter().filter_map(|it| it.0).collect();
                words.join(by)
            };
            // `shell` has a list of commands, `local_shell` one command as a list of words.
            let command = words(action.commands, "\n") + &words(action.command, " ");
            let title = title(&command.replace('\n', "; "), name);
            let mut class = Class::plain(ToolKind::Shell, Text::new(title));
            class.command = (!command.is_empty()).then(|| Text::new(command));
            (name.to_owned(), item.action.raw(), class)
        }
        "apply_patch" => {
            let class = patched(&item.operation.parse().unwrap_or_default());
            (name.to_owned(), item.operation.raw(), class)
        }
        "code_interpreter" => {
            let class = Class::plain(ToolKind::Other, Text::new("Run code"));
            let input = item.code.raw().map(|it| wrapped("code", &it));
            (name.to_owned(), input, class)
        }
        _ => {
            let input = item.action.raw().or(arguments);
            let class = classify(name, input.as_ref());
            (name.to_owned(), input, class)
        }
    }
}

fn classify(name: &str, input: Option<&Raw<'_>>) -> Class<'static> {
    let input = input.map(Raw::by_ref);
    tools::classify(name, input.as_ref(), None).into_owned()
}

fn title(words: &str, name: &str) -> String {
    if words.trim().is_empty() {
        name.to_owned()
    } else {
        words.to_owned()
    }
}

fn patched<'c>(operation: &wire::Operation<'c>) -> Class<'c> {
    let (verb, change) = match operation.r#type.as_deref() {
        Some("create_file") => ("Write", model::Change::Add),
        Some("delete_file") => ("Delete", model::Change::Delete),
        Some(_) | None => ("Edit", model::Change::Update),
    };
    let path = operation.path.text().unwrap_or_default();
    let mut class = Class::plain(ToolKind::Edit, Text::new(format!("{verb} {path}")));
    let diff = operation.diff.text().unwrap_or_default();
    if !diff.is_empty() {
        class.diffs = vec![patch(path.clone(), &diff, change == model::Change::Add)];
    }
    if !path.is_empty() {
        class.paths = vec![Location { path, line: None }];
    }
    class.change = Some(change);
    class
}

fn wrapped(key: &str, value: &Raw<'_>) -> Raw<'static> {
    Raw::parse(format!("{{\"{key}\":{}}}", value.get()))
}

/// Any value as the text it is.
fn string(json: &str) -> Raw<'static> {
    if json.starts_with('"') {
        Raw::parse(json.to_owned())
    } else {
        Raw::of(&json)
    }
}

/// What a call returned: a string, or blocks as every writer knows them.
pub(super) fn content<'c>(output: Any<'c>) -> Raw<'c> {
    let Some(raw) = output.0 else {
        return Raw::of(&"");
    };
    if raw.get().starts_with('"') {
        return Raw::borrowed(raw);
    }
    let parts: Option<Vec<wire::Part<'c>>> = output.parse();
    let piece = |part: wire::Part<'c>| match (part.text.text(), part.image_url.text()) {
        (Some(text), _) => Some(ContentPiece::Text(text)),
        (None, Some(url)) => Some(ContentPiece::Part(Part::ImageUrl { url })),
        (None, None) => None,
    };
    let pieces = parts.and_then(|it| it.into_iter().map(piece).collect::<Option<Vec<_>>>());
    match (pieces, printed(output)) {
        (Some(pieces), _) => content::blocks(&pieces),
        (None, Some((text, _))) => Raw::of(&text),
        (None, None) => string(raw.get()),
    }
}

/// What the commands of a shell printed, and how the last of them ended.
pub(super) fn printed(output: Any<'_>) -> Option<(String, Option<i32>)> {
    let commands: Vec<wire::Printed<'_>> = output.parse()?;
    let mut text = String::new();
    for piece in commands.iter().flat_map(|it| [it.stdout.0, it.stderr.0]) {
        text.push_str(&Text::from_json(piece?).to_str());
    }
    let exit = commands.last()?.outcome.exit_code.0;
    Some((text, exit.map(|it| it as i32)))
}

fn picture(data: Text<'_>) -> Raw<'static> {
    let media_type = Cow::Borrowed("image/png");
    content::blocks(&[ContentPiece::Part(Part::Image { media_type, data })])
}
