//! A session on its way into the journal, from its first prompt on.
//!
//! Editors open sessions that nobody ever uses; what an agent tells before it was asked anything is
//! kept back until it is. A journal that cannot be used is no reason not to work: it is told once, and
//! nothing is kept from there on.

use std::sync::Arc;
use std::time::Duration;

use formats::ag_ui::History;
use hub::{Recorder, Storing, Wish};
use journal::{Journal, NewSession};
use model::{Event, Frame, SessionId, Sink};
use runner::{Answer, Asked, Earlier};
use tokio::time::{Instant, sleep};

use crate::pace::{Pace, until};

/// An append for every piece of text would cost more than all else that is done with it.
const PACE: Duration = Duration::from_millis(50);
/// How long a prompt waits for another program that has the session.
const WAKE: Duration = Duration::from_secs(10);
const TRY_AGAIN: Duration = Duration::from_millis(200);
/// Beats after which the session is kept from lapsing.
const RENEW: u64 = 20;

#[derive(Debug)]
pub(crate) struct Recording {
    state: State,
    pace: Pace,
    n_beats: u64,
}

#[derive(Debug)]
enum State {
    /// What was told before there was a reason to keep it.
    Early(Vec<String>),
    Open(Box<Recorder>),
    /// Another program has the session, or may have it.
    Resting(SessionId<'static>),
    /// Nothing is kept any more.
    Lost,
}

impl Recording {
    pub(crate) fn early() -> Self {
        Self::new(State::Early(Vec::new()))
    }

    pub(crate) fn open(recorder: Recorder) -> Self {
        Self::new(State::Open(Box::new(recorder)))
    }

    fn new(state: State) -> Self {
        Self {
            state,
            pace: Pace::new(PACE),
            n_beats: 0,
        }
    }

    /// Where an agent that is started now goes on.
    pub(crate) fn earlier(&self) -> Earlier {
        match &self.state {
            State::Open(recorder) => recorder.earlier(),
            State::Early(_) | State::Resting(_) | State::Lost => Earlier::default(),
        }
    }

    /// The agent is gone; what it told before anything was asked of it goes with it.
    pub(crate) fn forget(&mut self) {
        if let State::Early(told) = &mut self.state {
            told.clear();
        }
    }

    pub(crate) fn is_early(&self) -> bool {
        matches!(self.state, State::Early(_))
    }

    pub(crate) fn is_resting(&self) -> bool {
        matches!(self.state, State::Resting(_))
    }

    /// Lets go of the session, so that another program can have it.
    pub(crate) async fn rest(&mut self) {
        let before = std::mem::replace(&mut self.state, State::Lost);
        self.state = match before {
            State::Open(recorder) => {
                let session = recorder.session().clone();
                recorder.finish().await;
                State::Resting(session)
            }
            before => before,
        };
    }

    /// Takes the session again; waits a little for another program that may be about to leave it.
    pub(crate) async fn wake(&mut self, journal: &Arc<dyn Journal>) -> journal::Result<()> {
        let State::Resting(session) = &self.state else {
            return Ok(());
        };
        let owner = hub::own_name();
        let deadline = Instant::now() + WAKE;
        loop {
            match Recorder::open(Arc::clone(journal), session, &owner).await {
                Ok(recorder) => {
                    self.state = State::Open(Box::new(recorder));
                    return Ok(());
                }
                Err(journal::Error::Held { .. }) if Instant::now() < deadline => {
                    // Who cannot be asked is waited for all the same.
                    hub::ask_to_leave(&**journal, session).await.ok();
                    sleep(TRY_AGAIN).await;
                }
                Err(err @ journal::Error::Held { .. }) => return Err(err),
                Err(err) => {
                    self.state = State::Lost;
                    return Err(err);
                }
            }
        }
    }

    /// The first prompt has come: from now on everything is kept.
    pub(crate) async fn begin(
        &mut self,
        journal: &Arc<dyn Journal>,
        session: NewSession,
    ) -> journal::Result<()> {
        let State::Early(told) = &mut self.state else {
            return Ok(());
        };
        let told = std::mem::take(told);
        self.state = State::Lost;
        let owner = hub::own_name();
        let mut recorder = Recorder::create(Arc::clone(journal), session, &owner).await?;
        for line in &told {
            if let Ok(event) = Event::from_json(line) {
                recorder.parts().0.event(&event);
            }
        }
        recorder.commit();
        self.state = State::Open(Box::new(recorder));
        Ok(())
    }

    pub(crate) fn has_room(&self) -> bool {
        match &self.state {
            State::Open(recorder) => recorder.has_room(),
            State::Early(_) | State::Resting(_) | State::Lost => true,
        }
    }

    /// Where the agent tells, and what is on its way meanwhile.
    pub(crate) fn parts(&mut self) -> (Told<'_>, Pending<'_>) {
        match &mut self.state {
            State::Open(recorder) => {
                let (sink, storing) = recorder.parts();
                let due = self.pace.due();
                (Told::Kept(sink), Pending(Some((storing, due))))
            }
            State::Early(told) => (Told::Early(told), Pending(None)),
            State::Resting(_) | State::Lost => (Told::Lost, Pending(None)),
        }
    }

    /// A step of the agent has returned.
    pub(crate) fn commit(&mut self) {
        if let State::Open(recorder) = &mut self.state {
            recorder.mark();
            if self.pace.is_due() || !recorder.has_room() {
                recorder.go_on();
            }
        }
    }

    /// What the session holds, as the messages of a thread.
    pub(crate) async fn history(&mut self) -> journal::Result<History> {
        match &mut self.state {
            State::Open(recorder) => {
                recorder.flush().await;
                recorder.history().await
            }
            State::Early(_) | State::Resting(_) | State::Lost => Ok(History::default()),
        }
    }

    /// Waits until all that was told can be read; what cannot be stored is said elsewhere.
    pub(crate) async fn flush(&mut self) {
        if let State::Open(recorder) = &mut self.state {
            recorder.flush().await;
        }
    }

    /// Something was stored, or nothing will be any more: then it is said why.
    pub(crate) fn stored(&mut self, stored: journal::Result<()>) -> Result<(), journal::Error> {
        if let State::Open(recorder) = &mut self.state {
            match stored {
                // The rest waits for its time, too.
                Ok(()) if self.pace.due().is_some_and(|it| it > Instant::now()) => (),
                Ok(()) => {
                    self.pace.passed();
                    recorder.go_on();
                }
                Err(err) => {
                    self.state = State::Lost;
                    return Err(err);
                }
            }
        }
        Ok(())
    }

    /// Looks what others want from this session, and keeps it.
    pub(crate) async fn beat(&mut self) -> journal::Result<Vec<Wish>> {
        self.n_beats += 1;
        let State::Open(recorder) = &mut self.state else {
            return Ok(Vec::new());
        };
        if self.n_beats.is_multiple_of(RENEW)
            && let Err(err) = recorder.renew().await
        {
            self.state = State::Lost;
            return Err(err);
        }
        // What cannot be read now is read with the next beat.
        Ok(recorder.wishes().await.unwrap_or_default())
    }

    /// Leaves what is to be answered in the journal, from where it comes back; false when nothing is kept.
    pub(crate) async fn settle_overdue(&mut self, overdue: &[(Asked, Answer)]) -> bool {
        let State::Open(recorder) = &mut self.state else {
            return false;
        };
        recorder.settle_overdue(overdue.to_vec()).await;
        true
    }

    /// Stores what is left; false when not everything could be.
    pub(crate) async fn finish(self) -> bool {
        match self.state {
            State::Open(recorder) => recorder.finish().await,
            State::Early(_) | State::Resting(_) | State::Lost => true,
        }
    }
}

/// Where an agent tells.
pub(crate) enum Told<'a> {
    Early(&'a mut Vec<String>),
    Kept(&'a mut (dyn Sink + Send)),
    Lost,
}

impl Sink for Told<'_> {
    fn event(&mut self, event: &Event<'_>) {
        match self {
            Self::Early(told) => {
                told.push(serde_json::to_string(event).expect("events are plain data"));
            }
            Self::Kept(sink) => sink.event(event),
            Self::Lost => (),
        }
    }

    fn frame(&mut self, frame: Frame<'_>) {
        if let Self::Kept(sink) = self {
            sink.frame(frame);
        }
    }
}

/// What is on its way into the journal, if anything is, and when more has to be.
pub(crate) struct Pending<'a>(Option<(Storing<'a>, Option<Instant>)>);

impl Pending<'_> {
    pub(crate) async fn next(&mut self) -> journal::Result<()> {
        match &mut self.0 {
            Some((storing, due)) => tokio::select! {
                stored = storing.next() => stored,
                () = until(*due) => Ok(()),
            },
            None => std::future::pending().await,
        }
    }
}
