//! Snapshots of the conversation: what was not shown yet is shown now.

use std::borrow::Cow;

use model::{Item, Message, Origin, Other, Raw, Reasoning, Role, Status, Text};

use super::texts::{role, text_and_parts};
use super::{AgUi, FrameContext, wire};
use crate::readers::arguments::arguments;
use crate::wire::lenient::{Any, List};

impl AgUi {
    /// The prompt of a run: the user's messages after all others.
    pub(super) fn show_prompt<'c>(&mut self, cx: &mut FrameContext<'c>, messages: Any<'c>) {
        let messages: List<wire::Message<'c>> = messages.parse().unwrap_or_default();
        let is_user = |it: &wire::Message<'_>| it.role.as_deref() == Some("user");
        // A client sends the whole conversation: earlier messages were answered in earlier runs.
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
        // A snapshot repeats the conversation: what streamed before must not be shown again.
        let is_new = self.shown.insert(&id);
        let before = cx.path.clone();
        self.enter(cx, message.subagent_run_id.as_deref());
        match message.role.as_deref() {
            Some("tool") => {
                let call = message.tool_call_id.take().unwrap_or_default();
                if is_new {
                    let status = match message.error.0 {
                        Some(_) => Status::Error,
                        None => Status::Ok,
                    };
                    self.close_call(cx, &call, message.content, status);
                }
            }
            Some("reasoning") if is_new => {
                let text = message.content.text().unwrap_or_default();
                let reasoning = Reasoning {
                    encrypted: message.encrypted_value.text(),
                    ..Reasoning::new(self.free_key(&id, "reasoning"), text)
                };
                self.lifecycle.close_text(cx, reasoning.into(), Status::Ok);
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
                // Also of a message that was shown: its calls have ids of their own and may be new.
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
        if role == Role::Assistant {
            self.lifecycle.note_answer(cx, &text);
        }
        let message = Message {
            group: (role == Role::Assistant).then(|| Cow::Owned(id.to_owned())),
            parts,
            ..Message::new(self.free_key(id, "message"), role, text)
        };
        self.lifecycle.close_text(cx, message.into(), Status::Ok);
    }

    fn whole_call<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        mut call: wire::ToolCall<'c>,
        message: &str,
    ) {
        let id = call.id.take().unwrap_or_default();
        if !self.shown.insert(&id) {
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
