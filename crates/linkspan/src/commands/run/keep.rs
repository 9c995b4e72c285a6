//! The run on its way into the journal, where `linkspan serve` and `linkspan sessions` find it.
//!
//! A journal that cannot be used is no reason not to run: it is said once, and nothing is kept.

use std::sync::Arc;
use std::time::Duration;

use hub::{Announced, Recorder, Storing, Wish};
use journal::{Error, Journal, NewSession, Owner};
use model::{SessionId, Sink};
use runner::locks::{self, Locks};
use runner::{Answer, Asked, Place, Setup, StartError};
use tokio::time::sleep;

use super::plan::Kept;
use crate::cli::RunArgs;
use crate::exit::{self, Code, Failure, chain};
use crate::store;

/// How often the journal is asked for what others want.
pub(super) const BEAT: Duration = Duration::from_millis(500);
/// Beats after which the session is kept from lapsing.
const RENEW: u64 = 20;
/// What others are told of who waits.
const HOLDER: &str = "linkspan run";
/// Between two tries to get a session that somebody else has.
const TRY_AGAIN: Duration = Duration::from_millis(200);
/// Tries after which its owner is asked again to let go of it.
const ASK_AGAIN: u32 = 100;

/// The recorder, if there is one.
#[derive(Debug, Default)]
pub(super) struct Keep {
    recorder: Option<Recorder>,
    n_beats: u64,
}

impl Keep {
    /// Fails only where somebody else has the session and nobody wants to wait.
    pub(super) async fn open(args: &RunArgs, kept: &Kept) -> Result<Self, Failure> {
        let opened = match store::folder(&args.data) {
            Ok(folder) => store::open(&folder, kept.cut).await.map(|it| (folder, it)),
            Err(failure) => Err(failure),
        };
        let (folder, journal) = match opened {
            Ok(opened) => opened,
            Err(failure) => {
                exit::say(&format!("{}; this run is not kept\n", failure.message()));
                return Ok(Self::default());
            }
        };
        let locks = Locks::new(folder.join("waiting"));
        match claim(journal, kept, args.no_wait, &locks).await {
            Ok(Claimed::Ours(recorder)) => Ok(Self {
                recorder: Some(*recorder),
                n_beats: 0,
            }),
            Ok(Claimed::Busy { pid }) => Err(Failure::Said {
                code: Code::Busy,
                message: format!(
                    "session `{}` is in use by process {pid}",
                    exit::shown(kept.native.as_deref().unwrap_or_default()),
                ),
                hint: Some("leave `--no-wait` out to wait for it".to_owned()),
            }),
            Err(err) => {
                not_kept(&err);
                Ok(Self::default())
            }
        }
    }

    /// A model is told what the session holds.
    pub(super) async fn recall(&self, setup: &mut Setup) {
        if let Some(recorder) = &self.recorder {
            setup.session = recorder.session().to_string();
            match recorder.history().await {
                Ok(history) => setup.recall(history),
                Err(err) => exit::say(&format!(
                    "linkspan: what was said before cannot be read: {}\n",
                    chain(&err)
                )),
            }
        }
    }

    /// Stores the prompt, so that everybody sees it before the agent says anything; none where nothing is kept.
    pub(super) async fn announce(&mut self, prompt: Option<&str>) -> Option<Announced> {
        let (Some(recorder), Some(prompt)) = (&mut self.recorder, prompt) else {
            return None;
        };
        match recorder.announce(prompt).await {
            Ok(announced) => Some(announced),
            Err(err) => {
                not_kept(&err);
                self.recorder = None;
                None
            }
        }
    }

    /// Where the events of the agent go on; none where nothing is kept.
    pub(super) fn place(&self, announced: Option<&Announced>) -> Option<Place> {
        let recorder = self.recorder.as_ref()?;
        Some(Place {
            session: recorder.session().to_string(),
            earlier: recorder.earlier(),
            announced: announced.map(|it| it.run.clone()),
        })
    }

    /// The agent could not be started: a run that was announced ends with that, and nothing else is kept.
    pub(super) async fn not_started(mut self, err: &StartError, announced: Option<&Announced>) {
        match (&mut self.recorder, announced) {
            (Some(recorder), Some(_)) => {
                recorder.not_started(err);
                self.finish().await;
            }
            (Some(_) | None, _) => self.discard().await,
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.recorder.as_ref().is_none_or(Recorder::has_room)
    }

    /// Where the agent tells, and what is on its way meanwhile.
    pub(super) fn parts(&mut self) -> (Option<&mut dyn Sink>, Pending<'_>) {
        match &mut self.recorder {
            Some(recorder) => {
                let (sink, storing) = recorder.parts();
                (Some(sink), Pending(Some(storing)))
            }
            None => (None, Pending(None)),
        }
    }

    pub(super) fn commit(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.commit();
        }
    }

    /// Something was stored, or nothing will be any more.
    pub(super) fn stored(&mut self, stored: journal::Result<()>) {
        match stored {
            Ok(()) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.go_on();
                }
            }
            Err(err) => {
                not_kept(&err);
                self.recorder = None;
            }
        }
    }

    /// Looks what others want from this run, and keeps the session.
    pub(super) async fn beat(&mut self) -> Vec<Wish> {
        self.n_beats += 1;
        let Some(recorder) = &mut self.recorder else {
            return Vec::new();
        };
        if self.n_beats.is_multiple_of(RENEW)
            && let Err(err) = recorder.renew().await
        {
            not_kept(&err);
            self.recorder = None;
            return Vec::new();
        }
        // What cannot be read now is read with the next beat.
        recorder.wishes().await.unwrap_or_default()
    }

    /// Leaves what is to be answered in the journal, from where it comes back; false when nothing is kept.
    pub(super) async fn settle_overdue(&mut self, overdue: &[(Asked, Answer)]) -> bool {
        let Some(recorder) = &mut self.recorder else {
            return false;
        };
        recorder.settle_overdue(overdue.to_vec()).await;
        true
    }

    /// Nothing came of it.
    pub(super) async fn discard(self) {
        if let Some(recorder) = self.recorder
            && let Err(err) = recorder.discard().await
        {
            exit::say(&format!("linkspan: {}\n", chain(&err)));
        }
    }

    pub(super) async fn finish(self) {
        if let Some(recorder) = self.recorder
            && !recorder.finish().await
        {
            exit::say("linkspan: the end of this run could not be kept\n");
        }
    }
}

/// What is on its way into the journal, if anything is.
pub(super) struct Pending<'a>(Option<Storing<'a>>);

impl Pending<'_> {
    pub(super) async fn next(&mut self) -> journal::Result<()> {
        match &mut self.0 {
            Some(storing) => storing.next().await,
            None => std::future::pending().await,
        }
    }
}

/// What came of asking for a session.
enum Claimed {
    Ours(Box<Recorder>),
    /// Somebody has it, and nobody wants to wait.
    Busy {
        pid: String,
    },
}

/// The session's recorder; who else has the session, or came before, is waited for.
async fn claim(
    journal: Arc<dyn Journal>,
    kept: &Kept,
    is_hasty: bool,
    locks: &Locks,
) -> journal::Result<Claimed> {
    let owner = hub::own_name();
    let Some(session) = find(&*journal, kept).await? else {
        let session = NewSession {
            id: SessionId::new(runner::new_id()),
            engine: kept.engine.clone(),
            cwd: kept
                .cwd
                .as_ref()
                .map(|it| it.to_string_lossy().into_owned()),
            title: Some(kept.title.clone()),
            parent: hub::parent(&*journal, kept.forked.as_deref()).await?,
        };
        let recorder = Recorder::create(journal, session, &owner).await?;
        return Ok(Claimed::Ours(Box::new(recorder)));
    };
    // The journal knows who has a session, not who came first. Without a queue there is no order, but
    // still only one at a time.
    let place = locks.queue("journal", session.id.as_str(), HOLDER).await;
    let place = place.ok();
    let ahead = place.as_ref().and_then(locks::Place::held);
    let mut told = ahead.map(|it| it.pid.to_string());
    if let Some(pid) = &told {
        if is_hasty {
            return Ok(Claimed::Busy { pid: pid.clone() });
        }
        waiting(pid);
    }
    let _turn = match place {
        Some(place) => place.wait().await.ok(),
        None => None,
    };
    let mut n_tries = 0_u32;
    loop {
        let pid = match Recorder::open(Arc::clone(&journal), &session.id, &owner).await {
            Err(Error::Held { owner, .. }) => process(&owner),
            opened => return opened.map(|it| Claimed::Ours(Box::new(it))),
        };
        if is_hasty {
            return Ok(Claimed::Busy { pid });
        }
        if told.as_ref() != Some(&pid) {
            waiting(&pid);
            told = Some(pid);
        }
        if n_tries.is_multiple_of(ASK_AGAIN) {
            // A server keeps the agents of idle sessions for a while; who cannot be asked is waited for.
            hub::ask_to_leave(&*journal, &session.id).await.ok();
        }
        n_tries = n_tries.wrapping_add(1);
        sleep(TRY_AGAIN).await;
    }
}

/// The session of the journal that the agent's session is kept in.
async fn find(journal: &dyn Journal, kept: &Kept) -> journal::Result<Option<journal::Session>> {
    let Some(native) = kept.native.as_deref() else {
        return Ok(None);
    };
    let found = journal.find_native(&SessionId::new(native)).await?;
    // Who names a session means it; the newest one of an engine is a session of that engine.
    Ok(found.filter(|it| !kept.is_latest || it.engine == kept.engine))
}

fn waiting(pid: &str) {
    exit::say(&format!("linkspan: waiting for process {pid}\n"));
}

/// Which process has a session: owners are named after theirs.
fn process(owner: &Owner) -> String {
    exit::shown(owner.as_str().split('.').next().unwrap_or_default())
}

fn not_kept(err: &Error) {
    exit::say(&format!("linkspan: {}; this run is not kept\n", chain(err)));
}
