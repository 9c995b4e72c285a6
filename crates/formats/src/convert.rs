//! One stream through one reader into one writer.

use model::{Body, End, Event, Frame, Losses, Reader, Sink, Writer};

use crate::framing::{Framer, Framing};

/// A reader joined to a writer: bytes in, bytes out.
#[derive(Debug)]
pub struct Converter {
    framer: Framer,
    reader: Box<dyn Reader>,
    writer: Box<dyn Writer>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    n_events: u64,
    n_frames: u64,
    n_understood: u64,
}

impl Converter {
    pub fn new(framing: Framing, reader: Box<dyn Reader>, writer: Box<dyn Writer>) -> Self {
        Self {
            framer: Framer::new(framing),
            reader,
            writer,
            counts: Counts::default(),
        }
    }

    /// Takes the next bytes and appends everything that follows from them to `out`.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let (reader, mut sink) = (
            &mut self.reader,
            CountingSink {
                writer: &mut *self.writer,
                out,
                counts: &mut self.counts,
            },
        );
        self.framer
            .push(chunk, &mut |frame| sink.read(reader, frame));
    }

    /// The input is over: closes what is open and appends the rest to `out`.
    pub fn end(&mut self, end: &End, out: &mut Vec<u8>) {
        let (reader, mut sink) = (
            &mut self.reader,
            CountingSink {
                writer: &mut *self.writer,
                out,
                counts: &mut self.counts,
            },
        );
        // The last line may have no line end: it is a frame before the reader hears of the end.
        self.framer.end(&mut |frame| sink.read(reader, frame));
        // A missing end is made up, so it does not show that any line was understood.
        let before = sink.counts.n_understood;
        reader.end(end, &mut sink);
        sink.counts.n_understood = before;
        self.writer.end(out);
    }

    pub fn losses(&self) -> &Losses {
        self.writer.losses()
    }

    pub fn n_events(&self) -> u64 {
        self.counts.n_events
    }

    /// Lines, or other frames, that were read.
    pub fn n_frames(&self) -> u64 {
        self.counts.n_frames
    }

    /// True if the input was not empty and the reader understood none of it.
    pub fn is_foreign(&self) -> bool {
        self.counts.n_frames > 0 && self.counts.n_understood == 0
    }
}

impl Clone for Converter {
    fn clone(&self) -> Self {
        Self {
            framer: self.framer.clone(),
            reader: self.reader.clone_box(),
            writer: self.writer.clone_box(),
            counts: self.counts,
        }
    }
}

struct CountingSink<'a> {
    writer: &'a mut dyn Writer,
    out: &'a mut Vec<u8>,
    counts: &'a mut Counts,
}

impl CountingSink<'_> {
    fn read(&mut self, reader: &mut Box<dyn Reader>, frame: Frame<'_>) {
        self.counts.n_frames += 1;
        reader.frame(frame, self);
    }
}

impl Sink for CountingSink<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.counts.n_events += 1;
        self.counts.n_understood += u64::from(is_understood(&event.body));
        self.writer.event(event, self.out);
    }
}

/// False for frames that a reader did not understand, and for leftovers beside what it understood.
fn is_understood(body: &Body<'_>) -> bool {
    match body {
        Body::NoticeRaised(notice) => !matches!(&*notice.code, "bad_line" | "unread"),
        Body::FrameUnmapped(_) => false,
        Body::SessionBound(_)
        | Body::RunStarted(_)
        | Body::RunEnded(_)
        | Body::ItemOpened(_)
        | Body::ItemUpdated(_)
        | Body::ItemDelta(_)
        | Body::ItemClosed(_)
        | Body::AskOpened(_)
        | Body::AskSettled(_)
        | Body::UsageReported(_) => true,
    }
}
