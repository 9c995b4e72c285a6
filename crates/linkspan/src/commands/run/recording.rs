//! The run on its way into the journal, where `linkspan serve` and `linkspan sessions` find it.
//!
//! A run does not need a usable journal: without one a warning is printed, and nothing is kept.

use std::sync::Arc;
use std::time::Duration;

use hub::{Announced, SessionLog};
use journal::{Error, Journal, NewSession, Owner};
use model::SessionId;
use runner::locks::{self, Locks};
use runner::{Setup, StartError};
use tokio::time::sleep;

use super::plan::SessionMeta;
use crate::cli::RunArgs;
use crate::exit::{self, Code, Failure, chain};
use crate::store::{self, OpenMode};

/// The name of a waiting process, for other processes.
const HOLDER: &str = "linkspan run";
/// Interval between attempts to acquire a session that is held.
const TRY_AGAIN: Duration = Duration::from_millis(200);
/// Tries after which its owner is asked again to release it.
const ASK_AGAIN: u32 = 100;

/// The log of the run's session, or none where the journal cannot be used. Fails only where another program has
/// the session and waiting is not wanted.
pub(super) async fn open(args: &RunArgs, kept: &SessionMeta) -> Result<SessionLog, Failure> {
    if args.caller.is_unkept {
        return Ok(SessionLog::off());
    }
    let opened = match store::folder(&args.data) {
        Ok(folder) => {
            let journal = store::open(&folder, kept.cut, OpenMode::ReadWrite).await;
            journal.map(|it| (folder, it))
        }
        Err(failure) => Err(failure),
    };
    let (folder, journal) = match opened {
        Ok(opened) => opened,
        Err(failure) => {
            exit::print_line(&format!("{}; this run is not kept\n", failure.message()));
            return Ok(SessionLog::off());
        }
    };
    let locks = Locks::new(folder.join("waiting"));
    match claim(journal, kept, args.no_wait, &locks).await {
        Ok(Claim::Acquired(log)) => Ok(*log),
        Ok(Claim::Busy { pid }) => {
            let session = exit::printable(kept.native.as_deref().unwrap_or_default());
            let message = format!("session `{session}` is in use by process {pid}");
            let hint = "leave `--no-wait` out to wait for it".to_owned();
            Err(Failure::new(Code::Busy, message).hint(Some(hint)))
        }
        Err(err) => {
            not_kept(&err);
            Ok(SessionLog::off())
        }
    }
}

/// Gives a model the history of the session.
pub(super) async fn recall(log: &mut SessionLog, setup: &mut Setup) {
    let Some(session) = log.session() else {
        return;
    };
    setup.session = session.to_string();
    if !setup.needs_history() {
        return;
    }
    match log.history().await {
        Ok(history) => setup.recall(history, None),
        Err(err) => exit::print_line(&format!(
            "linkspan: the history cannot be read: {}\n",
            chain(&err)
        )),
    }
}

/// Stores the prompt before the agent starts; none where nothing is kept.
pub(super) async fn announce(log: &mut SessionLog, prompt: Option<&str>) -> Option<Announced> {
    match log.announce(prompt?).await {
        Ok(announced) => announced,
        Err(err) => {
            not_kept(&err);
            *log = SessionLog::off();
            None
        }
    }
}

/// The agent could not be started: a run that was announced ends with that, and nothing else is kept.
pub(super) async fn not_started(
    mut log: SessionLog,
    err: &StartError,
    announced: Option<&Announced>,
) {
    match announced {
        Some(_) => {
            log.end_not_started(err);
            finish(log).await;
        }
        None => discard(log).await,
    }
}

/// Nothing came of it.
pub(super) async fn discard(log: SessionLog) {
    if let Err(err) = log.discard().await {
        exit::print_line(&format!("linkspan: {}\n", chain(&err)));
    }
}

pub(super) async fn finish(mut log: SessionLog) {
    if !log.release().await {
        exit::print_line("linkspan: the end of this run could not be kept\n");
    }
}

/// The result of acquiring a session.
enum Claim {
    Acquired(Box<SessionLog>),
    /// It is held and `no_wait` is set.
    Busy {
        pid: String,
    },
}

/// The session's log; waits for its owner and for the processes that came before.
async fn claim(
    journal: Arc<dyn Journal>,
    kept: &SessionMeta,
    no_wait: bool,
    locks: &Locks,
) -> journal::Result<Claim> {
    let Some(session) = find(&*journal, kept).await? else {
        let session = NewSession {
            home: journal::Node::default(),
            id: SessionId::new(runner::new_id()),
            engine: kept.engine.clone(),
            cwd: kept
                .cwd
                .as_ref()
                .map(|it| it.to_string_lossy().into_owned()),
            title: Some(kept.title.clone()),
            parent: hub::parent(&*journal, kept.forked.as_deref()).await?,
        };
        let log = SessionLog::create(journal, session).await?;
        return Ok(Claim::Acquired(Box::new(log)));
    };
    // The journal knows the owner of a session, not the order of those who wait. Without a queue there is
    // no order, but still only one at a time.
    let place = locks.queue("journal", session.id.as_str(), HOLDER).await;
    let place = place.ok();
    let ahead = place.as_ref().and_then(locks::QueueSlot::held);
    let mut shown_pid = ahead.map(|it| it.pid.to_string());
    if let Some(pid) = &shown_pid {
        if no_wait {
            return Ok(Claim::Busy { pid: pid.clone() });
        }
        waiting(pid);
    }
    let _turn = match place {
        Some(place) => place.wait().await.ok(),
        None => None,
    };
    let mut n_tries = 0_u32;
    loop {
        let pid = match SessionLog::open(Arc::clone(&journal), &session.id).await {
            Err(Error::Held { owner, .. }) => process(&owner),
            opened => return opened.map(|it| Claim::Acquired(Box::new(it))),
        };
        if no_wait {
            return Ok(Claim::Busy { pid });
        }
        if shown_pid.as_ref() != Some(&pid) {
            waiting(&pid);
            shown_pid = Some(pid);
        }
        if n_tries.is_multiple_of(ASK_AGAIN) {
            // A server keeps the agents of idle sessions warm, and the lease with them. If the request
            // fails, waiting still helps.
            hub::request_release(&*journal, &session.id).await.ok();
        }
        n_tries = n_tries.wrapping_add(1);
        sleep(TRY_AGAIN).await;
    }
}

/// The session of the journal that the agent's session is kept in.
async fn find(
    journal: &dyn Journal,
    kept: &SessionMeta,
) -> journal::Result<Option<journal::Session>> {
    let Some(native) = kept.native.as_deref() else {
        return Ok(None);
    };
    let found = journal.find_native(&SessionId::new(native)).await?;
    // A named session may be of any engine; `--continue` means the newest one of this engine.
    Ok(found.filter(|it| !kept.is_latest || it.engine == kept.engine))
}

fn waiting(pid: &str) {
    exit::print_line(&format!("linkspan: waiting for process {pid}\n"));
}

/// Which process has a session: owners are named after theirs.
fn process(owner: &Owner) -> String {
    exit::printable(owner.as_str().split('.').next().unwrap_or_default())
}

pub(super) fn not_kept(err: &Error) {
    exit::print_line(&format!("linkspan: {}; this run is not kept\n", chain(err)));
}
