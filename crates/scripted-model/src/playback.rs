//! The state that all connections share: where each lane is, and what was asked so far.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::request::Request;
use crate::scenario::{Repeat, Scenario, Turn};

/// A handle to a playing scenario; clones are the same stage.
#[derive(Clone, Debug)]
pub struct Playback(Arc<PlaybackShared>);

#[derive(Debug)]
struct PlaybackShared {
    state: Mutex<PlaybackState>,
    arrived: Condvar,
}

struct PlaybackState {
    scenario: Scenario,
    /// How many turns of the scenario each lane has played.
    positions: BTreeMap<String, usize>,
    /// How many turns each lane has played since the start, over all scenarios: what keeps ids apart.
    n_played: BTreeMap<String, usize>,
    requests: Vec<Request>,
    log: Option<Box<dyn Write + Send>>,
}

impl fmt::Debug for PlaybackState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlaybackState")
            .field("positions", &self.positions)
            .finish_non_exhaustive()
    }
}

/// A turn that is to be played now.
pub(crate) struct NextTurn {
    pub(crate) turn: Turn,
    /// The how-manieth turn of its lane it is, from 1.
    pub(crate) number: usize,
}

impl Playback {
    pub fn new(scenario: Scenario) -> Playback {
        let state = PlaybackState {
            scenario,
            positions: BTreeMap::new(),
            n_played: BTreeMap::new(),
            requests: Vec::new(),
            log: None,
        };
        Playback(Arc::new(PlaybackShared {
            state: Mutex::new(state),
            arrived: Condvar::new(),
        }))
    }

    /// Writes every further request to `log`, one JSON object per line.
    pub fn log_to(&self, log: impl Write + Send + 'static) {
        self.lock().log = Some(Box::new(log));
    }

    /// Begins another scenario. The requests so far are kept; an answer that is being streamed continues.
    pub fn set(&self, scenario: Scenario) {
        let mut state = self.lock();
        state.scenario = scenario;
        // `n_played` stays: ids must not repeat within one conversation.
        state.positions.clear();
    }

    /// All requests so far, in the order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.lock().requests.clone()
    }

    /// Waits until `n` requests have arrived, and returns what has arrived then, or when the time is over.
    pub fn wait_for_requests(&self, n: usize, at_most: Duration) -> Vec<Request> {
        let is_short = |state: &mut PlaybackState| state.requests.len() < n;
        let waited = self
            .0
            .arrived
            .wait_timeout_while(self.lock(), at_most, is_short);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.requests.clone()
    }

    pub(crate) fn record(&self, request: Request) -> io::Result<()> {
        let mut state = self.lock();
        let line = serde_json::to_string(&request)?;
        state.requests.push(request);
        self.0.arrived.notify_all();
        match &mut state.log {
            // Other processes read the log while this one runs.
            Some(log) => writeln!(log, "{line}").and_then(|()| log.flush()),
            None => Ok(()),
        }
    }

    /// The next turn of a lane, or why there is none.
    pub(crate) fn cue(&self, lane: &str) -> Result<NextTurn, String> {
        let mut state = self.lock();
        let state = &mut *state;
        let turns = state.scenario.lanes.get(lane);
        let position = state.positions.entry(lane.to_owned()).or_default();
        let next = turns.and_then(|turns| match state.scenario.repeat {
            Repeat::Never => turns.get(*position),
            Repeat::Last => turns.get(*position).or(turns.last()),
        });
        let turn = match (next, turns) {
            (Some(turn), _) => turn.clone(),
            // Agents ask for titles when they like, so no script has to count them.
            (None, _) if lane == Scenario::TITLE => Turn::title(),
            (None, Some(turns)) => {
                let n = turns.len();
                return Err(format!(
                    "the script is over: all {n} turns of lane `{lane}` were played"
                ));
            }
            (None, None) => return Err(format!("the script has no lane `{lane}`")),
        };
        *position += 1;
        let number = state.n_played.entry(lane.to_owned()).or_default();
        *number += 1;
        Ok(NextTurn {
            turn,
            number: *number,
        })
    }

    fn lock(&self) -> MutexGuard<'_, PlaybackState> {
        // A test that panicked while it had the lock must not fail the others.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
