//! An agent is started, and its prompt is in the journal before it says anything.

use hub::{Announced, SessionLog, Worker};
use runner::StartError;
use runner::locks::LockHolder;

use super::plan::{RunPlan, SessionMeta};
use super::recording;
use crate::cli::RunArgs;
use crate::exit::{self, Code, Failure};

/// A session at work.
pub(super) struct Started {
    pub(super) worker: Worker,
    /// The prompt as the journal has it already.
    pub(super) announced: Option<Announced>,
}

/// A run in the newest session, of which nobody knows yet where the journal keeps it.
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

/// Starts the agent, with the journal open for what it tells. The prompt is stored before, but not before
/// the session is free: who does not want to wait for it leaves nothing behind.
pub(super) async fn started(args: &RunArgs, plan: RunPlan) -> Result<Started, Failure> {
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
    if let Err(err) = setup
        .take_lock(|held| exit::print_line(&waiting(held)))
        .await
    {
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
        Ok(()) => Ok(Started { worker, announced }),
        Err(err) => {
            recording::not_started(worker.into_log(), &err, announced.as_ref()).await;
            Err(not_started(err))
        }
    }
}

fn waiting(held: &LockHolder) -> String {
    format!("linkspan: waiting for {held}\n")
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
    Failure::Message {
        code,
        message: exit::chain(&err),
        hint: hint.map(str::to_owned),
    }
}
