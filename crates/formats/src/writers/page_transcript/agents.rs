//! What sub-agents do, held until the call that started them ends.
//!
//! Agents work at the same time and a page has one order, so each keeps its own. When all of them
//! together hold too much, everything so far is written, each agent in its place, and they continue.

use model::{ItemId, ToolKind};

use super::Renderer;
use super::card::{CardOutcome, CardPart, ToolCard};
use crate::writers::{hash, take};

/// Bytes that all agents together hold.
pub(super) const MAX_HELD: usize = 4 * 1024 * 1024;
/// Agents that are remembered; more at once than any program starts.
const MAX_AGENTS: usize = 256;

#[derive(Clone, Debug, Default)]
pub(super) struct PageAgents {
    all: Vec<PageAgent>,
    n_held: usize,
}

#[derive(Clone, Debug)]
pub(super) struct PageAgent {
    call: ItemId<'static>,
    /// The agents around it, outermost first.
    above: Vec<ItemId<'static>>,
    pub(super) name: String,
    pub(super) about: Option<String>,
    pub(super) held: Vec<u8>,
    /// The [`text_hash`] of its task.
    pub(super) task: Option<u64>,
    /// The [`text_hash`] of its last text.
    pub(super) last_text: Option<u64>,
}

/// Tells two texts apart without keeping them; the white space around them does not count.
pub(super) fn text_hash(text: &str) -> u64 {
    hash(text.trim())
}

impl PageAgents {
    /// Takes what an agent did. Returns what has to be written now, because it became too much.
    pub(super) fn hold(
        &mut self,
        path: &[ItemId<'_>],
        block: &[u8],
        markup: &impl Renderer,
    ) -> Option<Vec<u8>> {
        let (call, above) = path.split_last()?;
        let mut overflow = None;
        if self.n_held + block.len() > MAX_HELD || self.all.len() >= MAX_AGENTS {
            overflow = Some(self.empty(markup));
            if self.all.len() >= MAX_AGENTS {
                self.all.clear();
            }
        }
        self.n_held += block.len();
        self.agent(call, above).held.extend_from_slice(block);
        overflow
    }

    pub(super) fn set_last_text(&mut self, path: &[ItemId<'_>], text: &str) {
        if let Some((call, above)) = path.split_last() {
            self.agent(call, above).last_text = Some(text_hash(text));
        }
    }

    pub(super) fn set_task(&mut self, path: &[ItemId<'_>], text: &str) {
        if let Some((call, above)) = path.split_last() {
            // The first prompt is the task; what comes later is not in the input of the call.
            self.agent(call, above).task.get_or_insert(text_hash(text));
        }
    }

    /// Names the agent that a call starts, and its subject.
    pub(super) fn introduce(
        &mut self,
        call: &ItemId<'_>,
        prose: (String, Option<String>),
        above: &[ItemId<'_>],
    ) {
        let agent = self.agent(call, above);
        (agent.name, agent.about) = prose;
    }

    #[cfg(test)]
    pub(super) fn n_held(&self) -> usize {
        self.all.iter().map(|it| it.held.len()).sum()
    }

    /// Takes an agent out, with everything that happened inside of it.
    pub(super) fn take(&mut self, call: &ItemId<'_>, markup: &impl Renderer) -> Option<PageAgent> {
        self.fold(Some(call), markup);
        let agent = take(&mut self.all, |it| it.call == *call)?;
        self.n_held -= agent.held.len();
        Some(agent)
    }

    /// Everything that is still held, as it belongs on the page; forgets all agents.
    pub(super) fn release(&mut self, markup: &impl Renderer) -> Vec<u8> {
        let rest = self.empty(markup);
        self.all.clear();
        rest
    }

    /// Everything that is held; the agents stay known.
    fn empty(&mut self, markup: &impl Renderer) -> Vec<u8> {
        self.fold(None, markup);
        let mut page = Vec::new();
        for agent in self.all.iter_mut().filter(|it| !it.held.is_empty()) {
            agent.part(markup, &mut page);
        }
        self.n_held = 0;
        page
    }

    /// Moves what is held by agents inside of others to those, deepest first.
    fn fold(&mut self, inside: Option<&ItemId<'_>>, markup: &impl Renderer) {
        loop {
            let deepest = self.all.iter().enumerate().filter(|(_, it)| {
                let is_inside = inside.is_none_or(|call| it.above.contains(call));
                is_inside && !it.above.is_empty() && !it.held.is_empty()
            });
            let Some((at, _)) = deepest.max_by_key(|(_, it)| it.above.len()) else {
                return;
            };
            let agent = &mut self.all[at];
            self.n_held -= agent.held.len();
            let mut part = Vec::new();
            agent.part(markup, &mut part);
            let above = agent.above.clone();
            self.n_held += part.len();
            if let Some((call, above)) = above.split_last() {
                self.agent(call, above).held.extend(part);
            }
        }
    }

    fn agent(&mut self, call: &ItemId<'_>, above: &[ItemId<'_>]) -> &mut PageAgent {
        let at = match self.all.iter().position(|it| it.call == *call) {
            Some(at) => at,
            None => {
                // An agent that is inside itself would keep `fold` busy for ever.
                let above = above.iter().filter(|it| *it != call).cloned();
                self.all.push(PageAgent {
                    call: call.clone().into_owned(),
                    above: above.map(ItemId::into_owned).collect(),
                    name: "sub-agent".to_owned(),
                    about: None,
                    held: Vec::new(),
                    task: None,
                    last_text: None,
                });
                self.all.len() - 1
            }
        };
        &mut self.all[at]
    }
}

impl PageAgent {
    /// Writes what the agent did so far as a card of its own.
    fn part(&mut self, markup: &impl Renderer, out: &mut Vec<u8>) {
        let card = ToolCard {
            kind: ToolKind::Task,
            name: self.name.clone(),
            about: self.about.clone(),
            ending: CardOutcome::Open,
            pieces: vec![CardPart::Inside(std::mem::take(&mut self.held))],
        };
        markup.card(&card, out);
    }
}
