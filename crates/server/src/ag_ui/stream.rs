//! One client of one run: what is stored of it first, then what happens, until its one end.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use formats::ag_ui::{AgUiEndpoint, AgUiEndpointConfig, Interrupt};
use formats::registry;
use hub::{Cursor, Delivered, Follow, Followed, Follower, Hub, Scope};
use journal::Run;
use model::{Ask, Body, ClientRun, Event, RunId, SessionId, ThreadMessage};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::encoding::Encoding;
use super::{AgUi, RunRequest};
use crate::error::Result;
use crate::metrics::FollowerGuard;

/// How often a queued prompt is looked for in the queue.
const TICK: Duration = Duration::from_secs(1);
/// Ticks without output after which a keep-alive is sent.
const KEEP_ALIVE: u32 = 15;
/// Ticks after which a prompt that is in no queue and has no run was taken back.
const TAKEN_BACK: u32 = 3;
/// Events before a run that may belong to it.
const MAX_HELD: usize = 64;

type LeaveFuture = Pin<Box<dyn Future<Output = &'static str> + Send>>;

pub(super) struct RunStream {
    hub: Arc<Hub>,
    session: SessionId<'static>,
    run: String,
    endpoint: AgUiEndpoint,
    pub(super) encoding: Encoding,
    after: Option<Cursor>,
    follower: Option<Follower>,
    /// The last event that was looked at.
    cursor: u64,
    phase: StreamPhase,
    out: Vec<u8>,
    n_quiet: u32,
    /// The client wants to keep the response's id; whether it has a state to keep it in.
    tells_state: Option<bool>,
    aborts: bool,
    /// The request has queued a prompt.
    pub(super) is_new: bool,
    /// What is cancelled when the client leaves with `on_disconnect=abort`.
    own: Option<RunKey>,
    leaving: LeaveFuture,
    /// None in a program that mounts the router and has no counters.
    counted: Option<FollowerGuard>,
}

/// A prompt or a run, by what is known of it.
enum RunKey {
    Prompt(u64),
    Run(RunId<'static>),
}

enum StreamPhase {
    /// The run has not begun, or is not known yet.
    Seeking(Seeking),
    /// In the run; events up to this one are known to the client.
    Inside(u64),
    Over,
}

struct Seeking {
    number: u64,
    /// Events that belong to the run only if the next event confirms it.
    events: VecDeque<Bytes>,
    /// A run has begun with the last event.
    is_candidate: bool,
    n_gone: u32,
}

impl RunStream {
    pub(super) fn new(
        core: &AgUi,
        asked: &RunRequest,
        session: SessionId<'static>,
        profile: Option<String>,
    ) -> Self {
        let input = &asked.input;
        let endpoint = AgUiEndpoint::new(AgUiEndpointConfig {
            thread: input.thread_id.clone(),
            run: input.run_id.clone(),
            profile,
            is_late: input.thread.messages.is_empty(),
        });
        let mut stream = Self {
            hub: Arc::clone(&core.hub),
            session,
            run: input.run_id.clone(),
            endpoint,
            encoding: asked.encoding,
            after: asked.after,
            follower: None,
            cursor: 0,
            phase: StreamPhase::Over,
            out: Vec::new(),
            n_quiet: 0,
            tells_state: None,
            aborts: asked.params.on_disconnect.as_deref() == Some("abort"),
            is_new: false,
            own: None,
            leaving: Box::pin(std::future::pending()),
            counted: None,
        };
        // AG-UI wants `RUN_STARTED` before everything else, warnings and refusals included.
        stream.send_event(AgUiEndpoint::begin);
        stream
    }

    /// Counts the client for as long as it is connected.
    pub(super) fn count_with(&mut self, guard: FollowerGuard) {
        self.counted = Some(guard);
    }

    /// The client is disconnected when this resolves, with the reason.
    pub(super) fn until(&mut self, leaving: impl Future<Output = &'static str> + Send + 'static) {
        self.leaving = Box::pin(leaving);
    }

    pub(super) fn send_state(&mut self, has_state: bool) {
        self.tells_state = Some(has_state);
    }

    pub(super) fn warn(&mut self, code: &str, text: &str) {
        self.send_event(|endpoint, out| endpoint.warn(code, text, out));
    }

    pub(super) fn snapshot(&mut self, messages: &[ThreadMessage]) {
        self.send_event(|endpoint, out| endpoint.snapshot(messages, out));
    }

    pub(super) fn refuse(&mut self, code: &str, message: &str) {
        self.send_event(|endpoint, out| endpoint.fail(code, message, out));
    }

    pub(super) fn finish(&mut self) {
        self.send_event(AgUiEndpoint::finish);
    }

    /// A run of this client, behind event `known`; 0 is from its beginning.
    pub(super) async fn follow_own(&mut self, run: &Run, known: u64) -> Result<()> {
        self.own = Some(RunKey::Run(run.run.clone()));
        self.follow_run(run, known).await
    }

    /// A run that waits in the queue; the session had `head` events before.
    pub(super) async fn wait_for(&mut self, number: u64, head: u64) -> Result<()> {
        self.own = Some(RunKey::Prompt(number));
        self.phase = StreamPhase::Seeking(Seeking {
            number,
            events: VecDeque::new(),
            is_candidate: false,
            n_gone: 0,
        });
        self.follow(head).await
    }

    /// Any run, with the events since the run before: `session.bound` is among them.
    pub(super) async fn follow_run(&mut self, run: &Run, known: u64) -> Result<()> {
        self.phase = StreamPhase::Inside(known);
        let journal = self.hub.journal();
        let before = journal.runs(&self.session, Some(run.first), 1).await?;
        let end = before.first().and_then(|it| it.end);
        self.follow(end.map_or(0, |it| it.seq)).await
    }

    async fn follow(&mut self, after: u64) -> Result<()> {
        self.cursor = after;
        let follow = Follow {
            scope: Scope::Session {
                id: self.session.clone(),
                after,
            },
            format: registry::CANONICAL.to_owned(),
            profile: None,
            served: None,
            bridge: None,
        };
        self.follower = Some(self.hub.follow(follow).await?);
        Ok(())
    }

    /// The next bytes for the client; none when it has everything.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.out.is_empty() {
                self.n_quiet = 0;
                return Some(std::mem::take(&mut self.out).into());
            }
            let follower = match &mut self.follower {
                Some(follower) if !self.endpoint.is_over() => follower,
                _ => return None,
            };
            let followed = tokio::select! {
                // A revoked token gets no further event, however many are ready.
                biased;
                why = &mut self.leaving => {
                    self.send_event(|endpoint, out| endpoint.fail("stopping", why, out));
                    continue;
                }
                followed = follower.next() => followed,
                () = sleep(TICK) => {
                    self.tick().await;
                    continue;
                }
            };
            match followed {
                Ok(Followed::Delivered(first)) => self.delivered(first).await,
                Ok(Followed::CaughtUp { .. }) => (),
                // The stream is this client's own, so it reads the journal until it is there again.
                Ok(Followed::Detached(_)) => {
                    let cursor = self.cursor;
                    if self.follow(cursor).await.is_err() {
                        self.refuse("storage", "the journal cannot be read");
                    }
                }
                Ok(Followed::Removed(_)) => {
                    self.refuse("session_removed", "the session was removed");
                }
                Err(err) => self.refuse("storage", &model::error_chain(&err)),
            }
        }
    }

    async fn delivered(&mut self, first: Arc<Delivered>) {
        let mut next = Some(first);
        while let Some(delivered) = next {
            self.cursor = delivered.seq;
            self.take(&delivered.bytes, delivered.seq).await;
            if self.endpoint.is_over() {
                return;
            }
            next = self.follower.as_mut().and_then(Follower::ready);
        }
    }

    async fn take(&mut self, line: &Bytes, seq: u64) {
        let text = str::from_utf8(line).unwrap_or_default();
        // A later version may have stored events that this one does not know.
        let Ok(event) = Event::from_json(text) else {
            return;
        };
        match &mut self.phase {
            StreamPhase::Over => (),
            StreamPhase::Inside(known) => {
                let known = *known;
                self.inside(&event, seq, known).await;
            }
            StreamPhase::Seeking(seeking) => {
                if seeking.takes(&event, line, &self.run) {
                    let events = std::mem::take(&mut seeking.events);
                    self.phase = StreamPhase::Inside(0);
                    for line in events {
                        let text = str::from_utf8(&line).unwrap_or_default();
                        if let Ok(event) = Event::from_json(text) {
                            self.inside(&event, event.seq, 0).await;
                        }
                    }
                }
            }
        }
    }

    async fn inside(&mut self, event: &Event<'_>, seq: u64, known: u64) {
        if seq <= known {
            // The client has it, but the writer has to know which items are open.
            self.endpoint.event(event, &mut Vec::new());
            // The client saw its run end with this interrupt, and its new run begins here.
            if seq == known {
                self.endpoint.interrupt(&[], &mut Vec::new());
                self.endpoint.begin(&mut Vec::new());
            }
            return;
        }
        let mut bytes = Vec::new();
        match &event.body {
            // An ask that the policy or another client has answered is no interrupt.
            Body::AskOpened(ask) if is_waiting(&self.hub, &self.session, seq).await => {
                self.interrupt(ask, seq, &mut bytes).await;
            }
            Body::RunEnded(_) => {
                if let (Some(has_state), Some(response)) = (self.tells_state, &event.native) {
                    let value = json!({ "response_id": response });
                    let key = "openresponses_state";
                    self.endpoint.remember(has_state, key, value, &mut bytes);
                }
                self.endpoint.event(event, &mut bytes);
            }
            _ => self.endpoint.event(event, &mut bytes),
        }
        self.encoding
            .put(&bytes, Some(seq), self.after, &mut self.out);
    }

    /// One interrupt for all asks that wait now: AG-UI ends the run with it.
    async fn interrupt(&mut self, ask: &Ask<'_>, seq: u64, out: &mut Vec<u8>) {
        let asks = self.hub.journal().asks(None).await.unwrap_or_default();
        let mut others = Vec::new();
        for other in &asks {
            if other.session == self.session
                && other.seq > seq
                && is_waiting(&self.hub, &self.session, other.seq).await
            {
                others.push(other);
            }
        }
        let id = |seq: u64| format!("{}:{seq}", self.session);
        let events = others.iter().filter_map(|it| {
            let line = str::from_utf8(&it.line).ok()?;
            Some((it.seq, Event::from_json(line).ok()?))
        });
        let events: Vec<(u64, Event<'_>)> = events.collect();
        let mut interrupts = vec![Interrupt { id: id(seq), ask }];
        interrupts.extend(events.iter().filter_map(|(seq, event)| match &event.body {
            Body::AskOpened(ask) => Some(Interrupt { id: id(*seq), ask }),
            _ => None,
        }));
        self.endpoint.interrupt(&interrupts, out);
    }

    /// Sends what is in no event of the journal. A client that reconnects has it already.
    fn send_event(&mut self, say: impl FnOnce(&mut AgUiEndpoint, &mut Vec<u8>)) {
        let mut bytes = Vec::new();
        let is_over = self.endpoint.is_over();
        say(&mut self.endpoint, &mut bytes);
        let is_end = !is_over && self.endpoint.is_over();
        // The end is sent in any case: without it the client would wait for ever.
        if self.after.is_none() || is_end {
            self.encoding.put(&bytes, None, None, &mut self.out);
        }
    }

    async fn tick(&mut self) {
        self.n_quiet += 1;
        if self.n_quiet >= KEEP_ALIVE {
            self.n_quiet = 0;
            self.out.extend_from_slice(self.encoding.keep_alive());
        }
        let StreamPhase::Seeking(seeking) = &mut self.phase else {
            return;
        };
        let before = seeking.number.saturating_sub(1);
        let commands = self.hub.journal().commands(&self.session, before).await;
        // A journal that cannot be read says nothing about the queue.
        let is_gone = commands.is_ok_and(|it| it.iter().all(|it| it.number != seeking.number));
        seeking.n_gone = if is_gone { seeking.n_gone + 1 } else { 0 };
        // Not at the first miss: a prompt leaves the queue before its run's first event gets here.
        if seeking.n_gone >= TAKEN_BACK {
            self.send_event(AgUiEndpoint::cancel);
        }
    }
}

async fn is_waiting(hub: &Hub, session: &SessionId<'_>, seq: u64) -> bool {
    // If in doubt, ask: a superfluous answer does no harm.
    hub.is_waiting(session, seq).await.unwrap_or(true)
}

impl Seeking {
    /// True when the run that is looked for has begun; its events are then those that were held.
    fn takes(&mut self, event: &Event<'_>, line: &Bytes, run: &str) -> bool {
        // Events still arrive, and the beginning of the run may be among the next.
        self.n_gone = 0;
        // The event behind `run.started` says whose run it is.
        if self.is_candidate {
            self.is_candidate = false;
            let is_it = ClientRun::of(event).is_some_and(|it| it.id == run);
            if !is_it {
                self.events.clear();
            }
            return is_it;
        }
        match &event.body {
            Body::RunStarted(_) => self.is_candidate = true,
            Body::RunEnded(_) => {
                self.events.clear();
                return false;
            }
            // Of an earlier run that is still open.
            _ if event.run.is_some() => return false,
            _ => (),
        }
        if self.events.len() == MAX_HELD {
            self.events.pop_front();
        }
        self.events.push_back(line.clone());
        false
    }
}

impl Drop for RunStream {
    fn drop(&mut self) {
        let is_left = self.aborts && self.follower.is_some() && !self.endpoint.is_over();
        let own = self.own.take().filter(|_| is_left);
        // `drop` cannot wait for the journal, so a task does; when the runtime ends there is none.
        if let (Some(own), Ok(runtime)) = (own, Handle::try_current()) {
            let (hub, session) = (Arc::clone(&self.hub), self.session.clone());
            runtime.spawn(async move {
                // The client is gone, so there is nowhere to report an error.
                own.cancel(&hub, &session).await.ok();
            });
        }
    }
}

impl RunKey {
    /// Only this prompt or run: other clients may have prompts in the same session.
    async fn cancel(&self, hub: &Hub, session: &SessionId<'_>) -> Result<bool> {
        match self {
            Self::Prompt(number) => Ok(hub.cancel_queued(session, *number).await?),
            Self::Run(run) => {
                // `Hub::abort` stops whatever runs now, which may be the run of another client.
                let newest = hub.journal().runs(session, None, 1).await?;
                let is_open = |it: &Run| it.run == *run && it.end.is_none();
                Ok(newest.iter().any(is_open) && hub.abort(session).await?)
            }
        }
    }
}
