//! The parts of a message: words, thoughts, steps, files. Tool calls have a file of their own.

use std::borrow::Cow;

use model::{
    Basis, Body, Channel, Compaction, Item, ItemId, Level, Message, Raw, Reasoning, Role, Scope,
    Status, Text, Tokens, Usage,
};

use super::{FrameContext, OpenCode, has_ended};
use crate::readers::lifecycle::raw;
use crate::wire::lenient::{Any, Object as _};
use crate::wire::opencode::{self as wire, Part};

impl OpenCode {
    /// A part of a server's message, as far as it has come.
    pub(super) fn part<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        part: Part<'c>,
        delta: Any<'c>,
        json: &'c str,
    ) {
        let role = self.messages.role_of(part.message_id.as_deref());
        let role = match role {
            Some(Role::User) if part.synthetic.is_true() => Role::Harness,
            role => role.unwrap_or(Role::Assistant),
        };
        let is_whole = role != Role::Assistant || has_ended(&part);
        match part.r#type.as_deref() {
            Some("text" | "reasoning") if self.is_again(cx, part.id.as_deref(), json) => (),
            Some("text" | "reasoning") if !is_whole => self.grow(cx, &part, role, delta),
            Some("text") => self.text(cx, part, role),
            Some("reasoning") => self.reasoning(cx, part),
            Some("tool") => self.tool(cx, part, json),
            Some("step-start") => self.step_start(cx),
            Some("step-finish") => self.step_finish(cx, part),
            Some("file") if self.is_again(cx, part.id.as_deref(), json) => (),
            Some("file") => self.file(cx, part, role, json),
            Some("compaction") => self.compaction(cx, &part),
            Some("retry") => {
                let said = super::outcome::message_of(part.error);
                let text = said.unwrap_or(Text::new("the model's provider failed"));
                let detail = Some(raw(json));
                self.emit_notice(cx, Level::Warning, "api_retry", text, detail);
            }
            Some("snapshot" | "patch" | "agent" | "subtask") => {
                let kind = part.r#type.as_deref().unwrap_or_default().to_owned();
                let detail = Some(raw(json));
                self.emit_notice(cx, Level::Debug, "part", Text::new(kind), detail);
            }
            other => {
                let what = format!("part `{}`", other.unwrap_or_default());
                self.lifecycle.unmapped(cx, what, json);
            }
        }
    }

    /// True for a part that has ended before; what comes after that is no news.
    pub(super) fn is_again(
        &mut self,
        cx: &mut FrameContext<'_>,
        id: Option<&str>,
        json: &str,
    ) -> bool {
        let Some(id) = id.map(ItemId::new) else {
            return false;
        };
        let is_again = !self.lifecycle.is_open(&id) && self.growing.has_ended(&id);
        if is_again {
            cx.extra.clear();
            let detail = Some(raw(json));
            let text = Text::new("a part that had ended was told again");
            self.emit_notice(cx, Level::Debug, "part_again", text, detail);
        }
        is_again
    }

    pub(super) fn text<'c>(&mut self, cx: &mut FrameContext<'c>, part: Part<'c>, role: Role) {
        self.begin(cx);
        keep_time(cx, part.time);
        let text = part.text.raw().map(Text::from).unwrap_or_default();
        if role == Role::Assistant && cx.path.is_empty() {
            self.run.add_text(part.message_id.as_deref(), &text);
        }
        let id = part.id.0.unwrap_or(Cow::Borrowed("text"));
        let item = message(ItemId::new(id), role, part.message_id.0, text);
        self.close_texts(cx, item);
    }

    pub(super) fn reasoning<'c>(&mut self, cx: &mut FrameContext<'c>, part: Part<'c>) {
        self.begin(cx);
        keep_time(cx, part.time);
        let text = part.text.raw().map(Text::from).unwrap_or_default();
        let id = part.id.0.unwrap_or(Cow::Borrowed("reasoning"));
        let item = reasoning(ItemId::new(id), part.message_id.0, text);
        self.close_texts(cx, item);
    }

    fn close_texts(&mut self, cx: &mut FrameContext<'_>, item: Item<'_>) {
        let id = item.id().clone().into_owned();
        self.lifecycle.close_text(cx, item, Status::Ok);
        self.growing.end(&id);
    }

    /// Words that go on: shows what is new of them.
    fn grow<'c>(&mut self, cx: &mut FrameContext<'c>, part: &Part<'c>, role: Role, delta: Any<'c>) {
        self.begin(cx);
        let Some(id) = part.id.0.clone().map(ItemId::new) else {
            return;
        };
        let whole = part.text.raw().map(Text::from).unwrap_or_default();
        let mut delta = delta.raw().filter(Raw::is_string).map(Text::from);
        if !self.growing.has(&id) || !self.lifecycle.is_open(&id) {
            let group = part.message_id.0.clone();
            let item = if part.r#type.as_deref() == Some("reasoning") {
                reasoning(id.clone(), group, Text::EMPTY)
            } else {
                message(id.clone(), role, group, Text::EMPTY)
            };
            self.lifecycle.open(cx, item);
            self.growing.begin(&id, part.message_id.as_deref());
            // The first piece seen may not be the first there was.
            delta = None;
        }
        let news = delta.or_else(|| self.growing.news(&id, &whole));
        if let Some(news) = news {
            self.growing.add(&id, &news);
            self.lifecycle.delta(cx, &id, Channel::Text, news);
        }
    }

    /// A piece of a part's text.
    pub(super) fn part_delta<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        properties: &mut wire::Properties<'c>,
        json: &str,
    ) {
        let field = properties.field.as_deref();
        let (Some(id), Some("text") | None) = (properties.part_id.take(), field) else {
            return self
                .lifecycle
                .unmapped(cx, "piece of a part".to_owned(), json);
        };
        let id = ItemId::new(id);
        let text = properties.delta.raw().map(Text::from).unwrap_or_default();
        if !self.lifecycle.is_open(&id) {
            if self.is_again(cx, Some(id.as_str()), json) {
                return;
            }
            self.begin(cx);
            let group = properties.message_id.0.clone();
            let item = message(id.clone(), Role::Assistant, group, Text::EMPTY);
            self.lifecycle.open_unseen(cx, item);
            self.growing.begin(&id, properties.message_id.as_deref());
        }
        self.growing.add(&id, &text);
        self.lifecycle.delta(cx, &id, Channel::Text, text);
    }

    /// A message is complete: so are its words.
    pub(super) fn end_texts(&mut self, cx: &mut FrameContext<'_>, message_id: &str) {
        for id in self.growing.of_message(message_id) {
            let is_main = self.lifecycle.path_of(&id).is_some_and(<[_]>::is_empty);
            let run = &mut self.run;
            self.lifecycle
                .close(cx, &id, Status::Ok, |item: &mut Item<'_>| {
                    if let Item::Message(message) = item
                        && is_main
                    {
                        run.add_text(Some(message_id), &message.text);
                    }
                });
            self.growing.end(&id);
        }
    }

    /// A file that came with a prompt.
    fn file<'c>(&mut self, cx: &mut FrameContext<'c>, part: Part<'c>, role: Role, json: &str) {
        self.begin(cx);
        let id = ItemId::new(part.id.0.unwrap_or(Cow::Borrowed("file")));
        let url = part.url.raw().map(Text::from).unwrap_or_default();
        let is_image = part
            .mime
            .as_deref()
            .is_some_and(|it| it.starts_with("image/"));
        let content = match image_data(&url.to_str()) {
            Some((media_type, data)) if is_image => model::Part::Image {
                media_type: Cow::Owned(media_type.to_owned()),
                data: Text::new(data.to_owned()),
            },
            _ if is_image && url.to_str().starts_with("http") => {
                model::Part::ImageUrl { url: url.clone() }
            }
            _ => model::Part::Other(raw(json)),
        };
        let mut item = message(id, role, part.message_id.0, Text::EMPTY);
        if let Item::Message(message) = &mut item {
            message.parts.push(content);
        }
        self.close_texts(cx, item);
    }

    fn compaction<'c>(&mut self, cx: &mut FrameContext<'c>, part: &Part<'c>) {
        self.begin(cx);
        let trigger = if part.auto.is_true() {
            "auto"
        } else {
            "manual"
        };
        let item = Item::Compaction(Compaction {
            id: compaction_id(cx),
            trigger: Some(Cow::Borrowed(trigger)),
            summary: None,
            tokens_before: None,
            tokens_after: None,
            detail: None,
        });
        self.lifecycle.open(cx, item);
    }

    pub(super) fn step_start(&mut self, cx: &mut FrameContext<'_>) {
        self.begin(cx);
        if cx.path.is_empty() {
            self.run.step_started();
        }
        let text = Text::new("a step begins");
        self.emit_notice(cx, Level::Debug, "step_start", text, None);
    }

    pub(super) fn step_finish<'c>(&mut self, cx: &mut FrameContext<'c>, part: Part<'c>) {
        self.begin(cx);
        let is_main = cx.path.is_empty();
        if is_main {
            self.run.step_finished(part.reason.as_deref());
        }
        let Some(tokens) = tokens(part.tokens) else {
            let text = Text::new("a step ends");
            return self.emit_notice(cx, Level::Debug, "step_finish", text, None);
        };
        if is_main {
            self.run.used(&tokens, part.cost.0);
        }
        if let Some(reason) = part.reason.0 {
            cx.extra.push((Cow::Borrowed("reason"), Raw::of(&reason)));
        }
        let usage = Usage {
            scope: Scope::Call,
            basis: Basis::Delta,
            tokens,
            model: self.about.model.as_deref().map(Cow::Borrowed),
            cost_usd: part.cost.0,
            detail: part.tokens.raw(),
        };
        self.lifecycle.emit(cx, Body::UsageReported(usage));
    }
}

/// One compaction goes on at a time in each session.
pub(super) fn compaction_id(cx: &FrameContext<'_>) -> ItemId<'static> {
    match cx.path.last() {
        Some(call) => ItemId::new(format!("compaction:{call}")),
        None => ItemId::new("compaction"),
    }
}

/// The model counts reasoning as a part of the output; OpenCode counts it apart.
pub(super) fn tokens(value: Any<'_>) -> Option<Tokens> {
    let mut tokens: wire::Tokens<'_> = value.parse()?;
    if !tokens.is_object() {
        return None;
    }
    let cache = tokens.cache.take();
    let reasoning = tokens.reasoning.as_u64();
    let output = tokens.output.as_u64();
    Some(Tokens {
        input: tokens.input.as_u64().unwrap_or_default(),
        cache_read: cache.read.as_u64().unwrap_or_default(),
        cache_write: cache.write.as_u64().unwrap_or_default(),
        output: output.map(|it| it.saturating_add(reasoning.unwrap_or_default())),
        reasoning,
    })
}

/// When a part began and ended has no place of its own.
pub(super) fn keep_time<'c>(cx: &mut FrameContext<'c>, time: Any<'c>) {
    if let Some(time) = time.raw() {
        cx.extra.push((Cow::Borrowed("time"), time));
    }
}

fn message<'a>(
    id: ItemId<'a>,
    role: Role,
    group: Option<Cow<'a, str>>,
    text: Text<'a>,
) -> Item<'a> {
    Item::Message(Message {
        id,
        role,
        group,
        text,
        parts: Vec::new(),
    })
}

fn reasoning<'a>(id: ItemId<'a>, group: Option<Cow<'a, str>>, text: Text<'a>) -> Item<'a> {
    Item::Reasoning(Reasoning {
        id,
        group,
        text,
        signature: None,
        encrypted: None,
    })
}

/// The media type and the data of `data:image/png;base64,...`.
pub(super) fn image_data(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    Some((head.strip_suffix(";base64")?, data))
}
