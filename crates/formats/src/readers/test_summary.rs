//! Events in few words, for tests that look at what matters.

use model::{Body, End, Event, Frame, Item, Reader};

/// What a reader makes of lines, one event per line of text.
pub(super) fn summarize(mut reader: Box<dyn Reader>, lines: &[&str], end: &End) -> String {
    let mut shown = String::new();
    let mut sink = |event: &Event<'_>| {
        let path: String = event.path.iter().map(|it| format!("[{it}] ")).collect();
        shown.push_str(&path);
        shown.push_str(&body(&event.body));
        if let Some(why) = event.why {
            shown.push_str(&format!("  ({why:?})"));
        }
        shown.push('\n');
    };
    for line in lines {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    reader.end(end, &mut sink);
    shown
}

fn body(body: &Body<'_>) -> String {
    match body {
        Body::SessionBound(it) => format!(
            "bound {} {:?} {}",
            it.native,
            it.how,
            it.model.as_deref().unwrap_or("-")
        ),
        Body::RunStarted(_) => "started".to_owned(),
        Body::RunEnded(it) => {
            let mut said = format!("ended {:?}", it.outcome);
            if let Some(answer) = &it.answer {
                said += &format!(" answer={answer:?}");
            }
            if let Some(error) = &it.error {
                said += &format!(" {}: {}", error.code, error.message);
            }
            if !it.denials.is_empty() {
                said += &format!(" denials={}", it.denials.len());
            }
            said
        }
        Body::ItemOpened(it) => format!("+ {}", item(it)),
        Body::ItemUpdated(it) => format!("~ {}", item(it)),
        Body::ItemDelta(it) => format!("  {} {:?} {:?}", it.item, it.channel, it.text),
        Body::ItemClosed(it) => format!("- {:?} {}", it.status, item(&it.item)),
        Body::AskOpened(it) => format!("ask {} {:?} {} {:?}", it.id, it.kind, it.tool, it.title),
        Body::AskSettled(it) => format!("settled {} {:?}", it.id, it.decision),
        Body::UsageReported(it) => format!("usage {:?} {:?}", it.scope, it.tokens),
        Body::NoticeRaised(it) => format!("{:?} {}: {}", it.level, it.code, it.text),
        Body::FrameUnmapped(it) => format!("unmapped {}", it.what),
    }
}

fn item(item: &Item<'_>) -> String {
    let id = item.id();
    match item {
        Item::Message(it) => format!("{:?} {id} {:?}", it.role, it.text),
        Item::Reasoning(it) => format!("reasoning {id} {:?}", it.text),
        Item::Tool(it) => {
            let result = it
                .result
                .as_ref()
                .map(|it| format!(" = {}", it.content.get()));
            let exit = it.class.exit_code.map(|it| format!(" exit={it}"));
            let change = it.class.change.map(|it| format!(" {it:?}"));
            format!(
                "{:?} {id} {:?}{}{}{}",
                it.class.kind,
                it.class.title,
                exit.unwrap_or_default(),
                change.unwrap_or_default(),
                result.unwrap_or_default()
            )
        }
        Item::Plan(it) => {
            let entries = it.entries.iter();
            let entries = entries.map(|it| format!("{}:{:?}", it.text, it.status));
            format!("plan {id} {}", entries.collect::<Vec<_>>().join(" "))
        }
        Item::Subagent(it) => format!("subagent {id} {} {:?}", it.name, it.report),
        Item::Compaction(it) => format!("compaction {id} {:?}", it.trigger),
        Item::Other(it) => format!("other {id} {}", it.name),
    }
}
