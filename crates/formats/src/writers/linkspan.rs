//! The canonical form: one event per line, nothing left out.

use model::{Event, Losses, Writer};

use super::line;

#[derive(Clone, Debug, Default)]
pub(crate) struct Linkspan {
    losses: Losses,
}

impl Writer for Linkspan {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        line(out, event);
    }

    fn end(&mut self, _: &mut Vec<u8>) {}

    fn losses(&self) -> &Losses {
        &self.losses
    }
}
