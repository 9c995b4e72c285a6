//! An agent is started, and its prompt is in the journal before it says anything.

use hub::Announced;
use runner::locks::Held;
use runner::{Agent, StartError};

use super::keep::Keep;
use super::plan::{Kept, Plan};
use crate::cli::RunArgs;
use crate::exit::{self, Code, Failure};

/// An agent at work, and the journal that it is kept in.
pub(super) struct Started {
    pub(super) agent: Agent,
    pub(super) keep: Keep,
    /// The prompt as the journal has it already.
    pub(super) announced: Option<Announced>,
}

/// A run in the newest session, of which nobody knows yet where the journal keeps it.
pub(super) struct Unplaced {
    pub(super) kept: Kept,
    pub(super) prompt: Option<String>,
}

impl Unplaced {
    pub(super) fn of(plan: &Plan) -> Option<Self> {
        plan.setup.is_latest.then(|| Self {
            kept: plan.kept.clone(),
            prompt: plan.setup.prompt().map(str::to_owned),
        })
    }
}

/// Starts the agent, with the journal open for what it tells. The prompt is stored before, but not before
/// the session is free: who does not want to wait for it leaves nothing behind.
pub(super) async fn started(args: &RunArgs, plan: Plan) -> Result<Started, Failure> {
    let Plan {
        mut setup, kept, ..
    } = plan;
    let mut keep = match setup.is_latest {
        // It is opened when the agent has named the session.
        true => Keep::default(),
        false => Keep::open(args, &kept).await?,
    };
    keep.recall(&mut setup).await;
    if let Err(err) = setup.take_lock(|held| exit::say(&waiting(held))).await {
        keep.discard().await;
        return Err(not_started(err));
    }
    let announced = keep.announce(setup.prompt()).await;
    if let Some(place) = keep.place(announced.as_ref()) {
        (setup.session, setup.earlier) = (place.session, place.earlier);
        setup.announced = place.announced;
    }
    match Agent::start(setup, |_| ()).await {
        Ok(agent) => Ok(Started {
            agent,
            keep,
            announced,
        }),
        Err(err) => {
            keep.not_started(&err, announced.as_ref()).await;
            Err(not_started(err))
        }
    }
}

fn waiting(held: &Held) -> String {
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
    Failure::Said {
        code,
        message: exit::chain(&err),
        hint: hint.map(str::to_owned),
    }
}
