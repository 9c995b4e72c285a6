//! For tests: reads lines and shows the events in the one notation.

use model::{End, Event, Exit, Frame, Reader};

use super::test_notation::event_line;

/// What a reader makes of lines.
pub(crate) fn read_lines(mut reader: Box<dyn Reader>, lines: &[&str], end: &End) -> String {
    let mut shown = String::new();
    let mut sink = |event: &Event<'_>| shown.push_str(&(event_line(event) + "\n"));
    for line in lines {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    reader.end(end, &mut sink);
    shown
}

pub(crate) fn exit(code: i32) -> End {
    End {
        exit: Some(Exit::Code(code)),
        aborted: false,
    }
}
