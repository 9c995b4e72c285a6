//! Parts that grow: how much of each was shown, and which have ended.

use model::{ItemId, Text};

use crate::readers::growing_text::ShownText;
use crate::readers::recent::Recent;

/// Parts that grow at once; a server that starts more without ending any loses track of the oldest.
const MAX_GROWING: usize = 256;
/// Parts remembered after their end, to know an update that comes too late.
const MAX_ENDED: usize = 1024;

#[derive(Clone, Debug, Default)]
pub(super) struct GrowingTexts {
    parts: Recent<GrowingPart, MAX_GROWING>,
    ended: Recent<ItemId<'static>, MAX_ENDED>,
}

#[derive(Clone, Debug)]
struct GrowingPart {
    id: ItemId<'static>,
    message: String,
    shown: ShownText,
}

impl GrowingTexts {
    pub(super) fn begin(&mut self, id: &ItemId<'_>, message: Option<&str>) {
        self.parts.push(GrowingPart {
            id: id.clone().into_owned(),
            message: message.unwrap_or_default().to_owned(),
            shown: ShownText::default(),
        });
    }

    pub(super) fn has(&self, id: &ItemId<'_>) -> bool {
        self.parts.iter().any(|it| it.id == *id)
    }

    /// More was shown of a part.
    pub(super) fn add(&mut self, id: &ItemId<'_>, text: &Text<'_>) {
        if let Some(part) = self.parts.iter_mut().rfind(|it| it.id == *id) {
            part.shown.add(&text.to_str());
        }
    }

    /// What the whole text so far has beyond what was shown; none when it does not continue it.
    pub(super) fn news(&self, id: &ItemId<'_>, whole: &Text<'_>) -> Option<Text<'static>> {
        let part = self.parts.iter().rfind(|it| it.id == *id)?;
        let whole = whole.to_str();
        Some(Text::new(part.shown.news(&whole)?.to_owned()))
    }

    pub(super) fn end(&mut self, id: &ItemId<'_>) {
        self.parts.retain(|it| it.id != *id);
        self.ended.push(id.clone().into_owned());
    }

    pub(super) fn has_ended(&self, id: &ItemId<'_>) -> bool {
        self.ended.contains(id)
    }

    /// The parts of a message that still grow.
    pub(super) fn of_message(&self, message: &str) -> Vec<ItemId<'static>> {
        let parts = self.parts.iter().filter(|it| it.message == message);
        parts.map(|it| it.id.clone()).collect()
    }

    pub(super) fn forget_run(&mut self) {
        // Ended parts stay known: an update of one may still come after the run.
        self.parts.clear();
    }
}
