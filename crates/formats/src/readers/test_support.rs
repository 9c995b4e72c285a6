//! For tests: what a reader tells, one short line per event.

use std::fmt::Write as _;

use model::{End, Event, Frame, Reader};

use super::ReaderConfig;

/// Reads lines and shows the events; debug notices are left out.
pub(crate) fn read_lines(mut reader: Box<dyn Reader>, lines: &[&str], end: &End) -> String {
    let mut shown = String::new();
    let mut sink = |event: &Event<'_>| show(event, &mut shown);
    for line in lines {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    reader.end(end, &mut sink);
    shown
}

fn show(event: &Event<'_>, shown: &mut String) {
    let line = serde_json::to_value(event).unwrap();
    let data = &line["data"];
    let name = event.body.name();
    if name == "notice.raised" && data["level"] == "debug" {
        return;
    }
    // What opens is repeated whole by what closes it.
    if name == "item.opened" && data.get("text").is_some() {
        return;
    }
    write!(shown, "{name}").unwrap();
    for part in ["path", "why", "extra"] {
        if let Some(value) = line.get(part) {
            write!(shown, " {part}={value}").unwrap();
        }
    }
    writeln!(shown, " {data}").unwrap();
}

pub(crate) fn config() -> ReaderConfig {
    ReaderConfig::default()
}
