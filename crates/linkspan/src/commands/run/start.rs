//! Starts the agent of a run; its prompt is in the journal before its first event.

use hub::{Announced, SessionLog, Worker};
use runner::StartError;
use runner::locks::LockHolder;

use super::plan::{RunPlan, SessionMeta};
use super::recording;
use crate::cli::RunArgs;
use crate::exit::{self, Code, Failure};

/// A run in the newest session: only its agent can tell which one that is.
pub(super) struct Unplaced {
    pub(super) kept: SessionMeta,
    pub(super) prompt: Option<String>,
}

impl Unplaced {
    pub(super) fn of(plan: &RunPlan) -> Option<Self> {
        plan.setup.is_latest.then(|| Self {
            kept: plan.kept.clone(),
            prompt: plan.setup.prompt().map(str::to_owned),
        })
    }
}

/// Starts the agent, with the journal open for its events, and returns the prompt as it is stored. It is stored
/// before the agent starts, but not before the session is free, so that `--no-wait` leaves nothing behind.
pub(super) async fn started(
    args: &RunArgs,
    plan: RunPlan,
) -> Result<(Worker, Option<Announced>), Failure> {
    let RunPlan {
        mut setup,
        kept,
        permissions,
        ask_limit,
        ..
    } = plan;
    let mut log = match setup.is_latest {
        // It is opened when the agent has named the session.
        true => SessionLog::off(),
        false => recording::open(args, &kept).await?,
    };
    recording::recall(&mut log, &mut setup).await;
    let waiting = |held: &LockHolder| {
        exit::print_line(&format!("linkspan: waiting for {held}\n"));
    };
    if let Err(err) = setup.take_lock(waiting).await {
        recording::discard(log).await;
        return Err(not_started(err));
    }
    let announced = recording::announce(&mut log, setup.prompt()).await;
    if let Some(place) = log.place(announced.as_ref()) {
        (setup.session, setup.resume_point) = (place.session, place.earlier);
        setup.announced = place.announced;
    }
    let mut worker = Worker::new(log, permissions);
    worker.set_ask_limit(ask_limit);
    match worker.start_now(setup, |_| ()).await {
        Ok(()) => Ok((worker, announced)),
        Err(err) => {
            recording::not_started(worker.into_log(), &err, announced.as_ref()).await;
            Err(not_started(err))
        }
    }
}

fn not_started(err: StartError) -> Failure {
    let (code, hint) = match &err {
        StartError::Busy { .. } => (Code::Busy, Some("leave `--no-wait` out to wait for it")),
        StartError::Spawn(_)
        | StartError::NoReader(_)
        | StartError::Recall(_)
        | StartError::Marker(_)
        | StartError::Lock { .. } => (Code::Failed, None),
    };
    Failure::new(code, exit::chain(&err)).hint(hint.map(str::to_owned))
}
