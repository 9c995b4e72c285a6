//! Snapshots of the conversation: what was not shown yet is shown now.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use model::{Item, Message, Origin, Other, Raw, Role, Status, Text};

use super::texts::{role, text_and_parts, thought};
use super::{AgUi, FrameContext, wire};
use crate::readers::arguments::arguments;
use crate::wire::lenient::{Any, List};

/// Ids remembered, by hash; a longer conversation forgets its beginning.
const MAX_SHOWN: usize = 65_536;

/// What a reader of the events has already seen.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenMessages {
    hashes: HashSet<u64>,
    order: VecDeque<u64>,
}

impl SeenMessages {
    /// Remembers an id; true when it is new.
    pub(super) fn note(&mut self, id: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let hash = hasher.finish();
        if !self.hashes.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > MAX_SHOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.hashes.remove(&oldest);
        }
        true
    }
}

impl AgUi {
    /// The prompt of a run: the user's messages after all others.
    pub(super) fn show_prompt<'c>(&mut self, cx: &mut FrameContext<'c>, messages: Any<'c>) {
        let messages: List<wire::Message<'c>> = messages.parse().unwrap_or_default();
        let is_user = |it: &wire::Message<'_>| it.role.as_deref() == Some("user");
        let n = messages.0.iter().rev().take_while(|it| is_user(it)).count();
        let at = messages.0.len() - n;
        cx.origin = Origin::Client;
        for message in messages.0.into_iter().skip(at) {
            self.message(cx, message);
        }
    }

    pub(super) fn snapshot<'c>(&mut self, cx: &mut FrameContext<'c>, messages: Any<'c>) {
        let messages: List<wire::Message<'c>> = messages.parse().unwrap_or_default();
        for message in messages.0 {
            self.message(cx, message);
        }
    }

    fn message<'c>(&mut self, cx: &mut FrameContext<'c>, mut message: wire::Message<'c>) {
        let id = message.id.take().unwrap_or_default();
        let is_new = self.shown.note(&id);
        let before = cx.path.clone();
        self.enter(cx, message.subagent_run_id.as_deref());
        match message.role.as_deref() {
            Some("tool") => {
                let call = message.tool_call_id.take().unwrap_or_default();
                if is_new {
                    let status = if message.error.0.is_some() {
                        Status::Error
                    } else {
                        Status::Ok
                    };
                    self.close_call(cx, &call, message.content, status);
                }
            }
            Some("reasoning") if is_new => {
                let text = message.content.raw().map(Text::from).unwrap_or_default();
                let key = self.free_key(&id, "reasoning");
                let mut item = thought(key, None, text);
                if let Item::Reasoning(it) = &mut item {
                    it.encrypted = message.encrypted_value.raw().map(Text::from);
                }
                self.lifecycle.close_text(cx, item, Status::Ok);
            }
            Some("activity") if is_new => {
                let item = Item::Other(Other {
                    id: self.free_key(&id, "activity"),
                    name: message.activity_type.take().unwrap_or_default(),
                    text: None,
                    data: message.content.raw().unwrap_or_else(|| Raw::of(&())),
                });
                self.lifecycle.close_whole(cx, item, Status::Ok);
            }
            Some("reasoning" | "activity") => (),
            name => {
                let role = role(name);
                if is_new {
                    self.whole_message(cx, &id, role, message.content);
                }
                for call in message.tool_calls.0 {
                    self.whole_call(cx, call, &id);
                }
            }
        }
        cx.path = before;
    }

    fn whole_message<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: &str,
        role: Role,
        content: Any<'c>,
    ) {
        let (text, parts) = text_and_parts(content);
        if text.is_empty() && parts.is_empty() {
            return;
        }
        if role == Role::Assistant && cx.path.is_empty() {
            self.last_text = Some(text.clone().into_owned());
        }
        let message = Message {
            id: self.free_key(id, "message"),
            role,
            group: (role == Role::Assistant).then(|| Cow::Owned(id.to_owned())),
            text,
            parts,
        };
        self.lifecycle
            .close_text(cx, Item::Message(message), Status::Ok);
    }

    fn whole_call<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        mut call: wire::ToolCall<'c>,
        message: &str,
    ) {
        let id = call.id.take().unwrap_or_default();
        if !self.shown.note(&id) {
            return;
        }
        let name = call.function.name.take().unwrap_or_default();
        let at = self.open_call(cx, &id, &name, Some(message), false);
        if let Some(args) = call.function.arguments.0 {
            let input = arguments(&Text::from_json(args));
            let key = self.call_key(at);
            self.set_input(cx, &key, input);
        }
    }
}
