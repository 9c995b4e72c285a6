//! Announced runs: a run and its prompt are emitted before the agent's first output, so that the
//! client sees them at once.
//!
//! The reader does not know about it and emits the start of the run and the prompt when the agent
//! does. These duplicates are dropped here, and everything else gets the announced run id.

use model::{Body, Event, Item, ItemClosed, ItemId, RunId, Sink, Text};

use super::{LiveRun, StampingSink, is_prompt};

/// A run that was emitted, with its prompt, before the agent's first output. The reader's own start
/// and prompt are duplicates.
#[derive(Debug)]
pub(super) struct Announced {
    run: RunId<'static>,
    /// As the reader calls it, once it has begun there.
    of_reader: Option<RunId<'static>>,
    /// The prompt, while the agent's stream may repeat it.
    prompt: Option<String>,
    /// The item that repeats it, while it is open.
    echo: Option<ItemId<'static>>,
}

impl LiveRun {
    /// The run that starts now was announced, with its prompt.
    pub(crate) fn set_announced(&mut self, run: RunId<'static>) {
        self.is_prompted = true;
        self.run = Some(run.clone());
        // A prompt that the stream does not repeat has no duplicate to wait for.
        let prompt = self.prompt.take().filter(|it| it.is_echoed);
        self.n_prompts += 1;
        self.announced = Some(Announced {
            run,
            of_reader: None,
            prompt: prompt.map(|it| it.text),
            echo: None,
        });
    }

    /// The run is being aborted.
    pub(crate) fn stops(&mut self) {
        let announced = self.announced.as_ref();
        self.is_stopped_early |= announced.is_some_and(|it| it.of_reader.is_none());
    }

    /// The id that a run of the reader was announced with.
    pub(super) fn announced_id(&self, run: Option<&RunId<'_>>) -> Option<RunId<'static>> {
        let announced = self.announced.as_ref()?;
        let is_it = run.is_some() && announced.of_reader.as_ref() == run;
        is_it.then(|| announced.run.clone())
    }
}

impl Announced {
    /// Whether an event is a duplicate of the announcement.
    fn knows(&mut self, event: &Event<'_>) -> bool {
        match &event.body {
            Body::RunStarted(_) if self.of_reader.is_none() => {
                self.of_reader = event.run.clone().map(RunId::into_owned);
                true
            }
            Body::ItemOpened(item)
                if is_prompt(event, item) && self.prompt.is_some() && self.echo.is_none() =>
            {
                self.echo = Some(item.id().clone().into_owned());
                true
            }
            Body::ItemUpdated(item) => self.is_echo(item.id()),
            Body::ItemDelta(delta) => self.is_echo(&delta.item),
            Body::ItemOpened(_)
            | Body::ItemClosed(_)
            | Body::RunStarted(_)
            | Body::SessionBound(_)
            | Body::RunEnded(_)
            | Body::AskOpened(_)
            | Body::AskSettled(_)
            | Body::UsageReported(_)
            | Body::NoticeRaised(_)
            | Body::FrameUnmapped(_) => false,
        }
    }

    fn is_echo(&self, id: &ItemId<'_>) -> bool {
        self.echo.as_ref() == Some(id)
    }

    /// The echo is complete: true when it differs from the prompt and has to be emitted.
    fn is_other(&mut self, closed: &ItemClosed<'_>) -> Option<bool> {
        self.echo.take_if(|it| *it == *closed.item.id())?;
        let prompt = self.prompt.take()?;
        let Item::Message(message) = &closed.item else {
            return Some(true);
        };
        // Space around it does not make another prompt; images do.
        Some(message.text.to_str().trim() != prompt.trim() || !message.parts.is_empty())
    }
}

impl StampingSink<'_> {
    /// Whether an event adds nothing to the announcement of its run.
    pub(super) fn is_known(&mut self, event: &Event<'_>) -> bool {
        let Some(announced) = &mut self.live.announced else {
            return false;
        };
        if let Body::ItemClosed(closed) = &event.body
            && let Some(is_other) = announced.is_other(closed)
        {
            if is_other {
                self.emit_echo(event, closed);
            }
            return true;
        }
        let is_known = announced.knows(event);
        if is_known {
            let run = announced.run.clone();
            self.live.observe(event, self.now);
            // `observe` has set the reader's id of the run, which no client knows.
            self.live.run = Some(run);
        }
        is_known
    }

    /// The agent got another prompt than announced; its item was held back so far.
    fn emit_echo<'a>(&mut self, event: &Event<'a>, closed: &ItemClosed<'a>) {
        let mut opened = closed.item.clone();
        if let Item::Message(message) = &mut opened {
            message.text = Text::new("");
        }
        let opened = Event {
            body: Body::ItemOpened(opened),
            ..event.clone()
        };
        // The opening was dropped as a duplicate, so it is made up for here.
        self.owned_event(opened);
        self.event(event);
    }
}
