//! The parts of a message: words, thoughts, steps, files. Tool calls have a file of their own.

use std::borrow::Cow;

use model::{
    Basis, Body, Channel, Compaction, Item, ItemId, Level, Message, Raw, Reasoning, Role, Scope,
    Status, Text, Tokens, Usage,
};

use super::{FrameContext, OpenCode, has_ended};
use crate::readers::content;
use crate::wire::lenient::{Any, Object as _};
use crate::wire::opencode::{self as wire, Part};

impl OpenCode {
    /// A part of a server's message, as far as it has come.
    pub(super) fn part<'c>(&mut self, cx: &mut FrameContext<'c>, part: Part<'c>, delta: Any<'c>) {
        let id = part.message_id.as_deref().unwrap_or_default();
        let role = self.messages.iter().rfind(|(it, _)| it == id);
        let role = match role.map(|it| it.1) {
            Some(Role::User) if part.synthetic.is_true() => Role::Harness,
            role => role.unwrap_or(Role::Assistant),
        };
        // Prompts never stream; only parts of the assistant have a time of their end.
        let is_whole = role != Role::Assistant || has_ended(&part);
        match part.r#type.as_deref() {
            Some("text" | "reasoning" | "file") if self.is_again(cx, part.id.as_deref()) => (),
            Some("text" | "reasoning") if !is_whole => self.grow(cx, &part, role, delta),
            Some("text") => self.text(cx, part, role),
            Some("reasoning") => self.reasoning(cx, part),
            Some("tool") => self.tool(cx, part),
            Some("step-start") => self.step_start(cx),
            Some("step-finish") => self.step_finish(cx, part),
            Some("file") => self.file(cx, part, role),
            Some("compaction") => self.compaction(cx, &part),
            Some("retry") => {
                let text = super::outcome::message_of(part.error);
                let text = text.unwrap_or(Text::new("the model's provider failed"));
                self.lifecycle
                    .raise_with_message(cx, Level::Warning, "api_retry", text);
            }
            Some(kind @ ("snapshot" | "patch" | "agent" | "subtask")) => {
                self.lifecycle
                    .raise_with_message(cx, Level::Debug, "part", kind);
            }
            other => {
                let what = format!("part `{}`", other.unwrap_or_default());
                self.lifecycle.unmapped(cx, what);
            }
        }
    }

    /// True for a part that has ended before; what comes after that is no news.
    pub(super) fn is_again(&mut self, cx: &mut FrameContext<'_>, id: Option<&str>) -> bool {
        let Some(id) = id.map(ItemId::new) else {
            return false;
        };
        let is_again = !self.lifecycle.is_open(&id) && self.growing.has_ended(&id);
        if is_again {
            let text = "a part that had ended was told again";
            self.lifecycle
                .raise_with_message(cx, Level::Debug, "part_again", text);
        }
        is_again
    }

    pub(super) fn text<'c>(&mut self, cx: &mut FrameContext<'c>, part: Part<'c>, role: Role) {
        self.begin(cx);
        cx.keep("time", part.time);
        let text = part.text.text().unwrap_or_default();
        if role == Role::Assistant && cx.path.is_empty() {
            self.run.add_text(part.message_id.as_deref(), &text);
        }
        let id = part.id.0.unwrap_or(Cow::Borrowed("text"));
        let message = Message {
            group: part.message_id.0,
            ..Message::new(ItemId::new(id), role, text)
        };
        self.close_texts(cx, message.into());
    }

    pub(super) fn reasoning<'c>(&mut self, cx: &mut FrameContext<'c>, part: Part<'c>) {
        self.begin(cx);
        cx.keep("time", part.time);
        let text = part.text.text().unwrap_or_default();
        let id = part.id.0.unwrap_or(Cow::Borrowed("reasoning"));
        let reasoning = Reasoning {
            group: part.message_id.0,
            ..Reasoning::new(ItemId::new(id), text)
        };
        self.close_texts(cx, reasoning.into());
    }

    fn close_texts(&mut self, cx: &mut FrameContext<'_>, item: Item<'_>) {
        let id = item.id().clone().into_owned();
        self.lifecycle.close_text(cx, item, Status::Ok);
        self.growing.end(&id);
    }

    /// A text that continues: emits the new part.
    fn grow<'c>(&mut self, cx: &mut FrameContext<'c>, part: &Part<'c>, role: Role, delta: Any<'c>) {
        self.begin(cx);
        let Some(id) = part.id.0.clone().map(ItemId::new) else {
            return;
        };
        let whole = part.text.text().unwrap_or_default();
        let mut delta = delta.text().filter(|_| delta.is_str());
        if !self.growing.has(&id) || !self.lifecycle.is_open(&id) {
            let group = part.message_id.0.clone();
            let item = match part.r#type.as_deref() {
                Some("reasoning") => Item::Reasoning(Reasoning {
                    group,
                    ..Reasoning::new(id.clone(), Text::EMPTY)
                }),
                Some(_) | None => Item::Message(Message {
                    group,
                    ..Message::new(id.clone(), role, Text::EMPTY)
                }),
            };
            self.lifecycle.open(cx, item);
            self.growing.begin(&id, part.message_id.as_deref());
            // The first piece seen may not be the first there was.
            delta = None;
        }
        // The server may send the piece beside the whole part: then nothing has to be compared.
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
    ) {
        // Pieces of other fields are not part of the message text.
        let field = properties.field.as_deref();
        let (Some(id), Some("text") | None) = (properties.part_id.take(), field) else {
            return self.lifecycle.unmapped(cx, "piece of a part");
        };
        let id = ItemId::new(id);
        let text = properties.delta.text().unwrap_or_default();
        if !self.lifecycle.is_open(&id) {
            if self.is_again(cx, Some(id.as_str())) {
                return;
            }
            self.begin(cx);
            let message = Message {
                group: properties.message_id.0.clone(),
                ..Message::new(id.clone(), Role::Assistant, Text::EMPTY)
            };
            // The piece does not say what kind of part it belongs to; most are words.
            self.lifecycle.open_unseen(cx, message.into());
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
    fn file<'c>(&mut self, cx: &mut FrameContext<'c>, part: Part<'c>, role: Role) {
        self.begin(cx);
        let mime = part.mime.as_deref().unwrap_or_default();
        let picture = part.url.0.map(content::picture);
        let content = match picture.filter(|_| mime.starts_with("image/")) {
            // What is neither data nor an address of the web is a path on the agent's machine.
            Some(model::Part::ImageUrl { url }) if !url.to_str().starts_with("http") => None,
            picture => picture,
        };
        let id = ItemId::new(part.id.0.unwrap_or(Cow::Borrowed("file")));
        let message = Message {
            group: part.message_id.0,
            parts: vec![content.unwrap_or_else(|| model::Part::Other(cx.raw()))],
            ..Message::new(id, role, Text::EMPTY)
        };
        self.close_texts(cx, message.into());
    }

    fn compaction<'c>(&mut self, cx: &mut FrameContext<'c>, part: &Part<'c>) {
        self.begin(cx);
        let trigger = if part.auto.is_true() {
            "auto"
        } else {
            "manual"
        };
        let item = Item::Compaction(Compaction {
            trigger: Some(Cow::Borrowed(trigger)),
            ..Compaction::new(compaction_id(cx))
        });
        self.lifecycle.open(cx, item);
    }

    pub(super) fn step_start(&mut self, cx: &mut FrameContext<'_>) {
        self.begin(cx);
        // Steps of sub-agents decide nothing about the run.
        if cx.path.is_empty() {
            self.run.step_started();
        }
        self.lifecycle
            .raise(cx, Level::Debug, "step_start", "a step begins");
    }

    pub(super) fn step_finish<'c>(&mut self, cx: &mut FrameContext<'c>, part: Part<'c>) {
        self.begin(cx);
        let is_main = cx.path.is_empty();
        if is_main {
            self.run.step_finished(part.reason.as_deref());
        }
        let Some(tokens) = tokens(part.tokens) else {
            return self
                .lifecycle
                .raise(cx, Level::Debug, "step_finish", "a step ends");
        };
        if is_main {
            self.run.used(&tokens, part.cost.0);
        }
        if let Some(reason) = part.reason.0 {
            cx.extra.push((Cow::Borrowed("reason"), Raw::of(&reason)));
        }
        let usage = Usage {
            model: self.about.model.as_deref().map(Cow::Borrowed),
            cost_usd: part.cost.0,
            detail: part.tokens.raw(),
            ..Usage::new(Scope::Call, Basis::Delta, tokens)
        };
        self.lifecycle.emit(cx, Body::UsageReported(usage));
    }
}

/// Each session has one compaction at a time.
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
        input: tokens.input.count(),
        cache_read: cache.read.count(),
        cache_write: cache.write.count(),
        output: output.map(|it| it.saturating_add(reasoning.unwrap_or_default())),
        reasoning,
    })
}
