//! When to do what while a process is being stopped, and while its output runs out. Pure: the caller
//! owns the clock.

use std::time::{Duration, Instant};

/// How long each step of stopping an agent may take before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GracePeriods {
    /// From the first sign, a question in the agent's own protocol or an interrupt, to being terminated.
    pub interrupted: Duration,
    /// From being terminated to being killed.
    pub terminated: Duration,
}

/// An interrupted agent may still write its session and a last message, which takes seconds at worst.
/// With both, the worst agent is gone within nine seconds.
pub const PATIENCE: GracePeriods = GracePeriods {
    interrupted: Duration::from_secs(5),
    terminated: Duration::from_secs(3),
};

impl GracePeriods {
    /// How long an agent that was asked in its own protocol has before it is interrupted as well: the
    /// larger part of the time for both.
    fn asked(self) -> Duration {
        self.interrupted * 3 / 5
    }
}

/// What to do next to a process that must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EscalationStep {
    Interrupt,
    Terminate,
    Kill,
}

/// The way from asking to killing: each step comes due when the one before it was not enough.
#[derive(Clone, Debug)]
pub struct Escalation {
    interrupted: Duration,
    terminated: Duration,
    next: Option<(Instant, EscalationStep)>,
}

impl Escalation {
    /// For an agent that was asked to stop in its own protocol just now.
    pub fn started(now: Instant, patience: GracePeriods) -> Self {
        let asked = patience.asked();
        Self {
            interrupted: patience.interrupted - asked,
            terminated: patience.terminated,
            next: Some((now + asked, EscalationStep::Interrupt)),
        }
    }

    /// For an agent that cannot be asked: the interrupt is due at once.
    pub fn signals(now: Instant, patience: GracePeriods) -> Self {
        Self {
            interrupted: patience.interrupted,
            terminated: patience.terminated,
            next: Some((now, EscalationStep::Interrupt)),
        }
    }

    /// When [`Escalation::step`] is worth calling again; never after the kill.
    pub fn due(&self) -> Option<Instant> {
        self.next.map(|(at, _)| at)
    }

    /// The step that is due, once.
    pub fn step(&mut self, now: Instant) -> Option<EscalationStep> {
        let (_, step) = self.next.filter(|(at, _)| *at <= now)?;
        // Counted from now, so that a step that comes late shortens no grace period.
        self.next = match step {
            EscalationStep::Interrupt => Some((now + self.interrupted, EscalationStep::Terminate)),
            EscalationStep::Terminate => Some((now + self.terminated, EscalationStep::Kill)),
            EscalationStep::Kill => None,
        };
        Some(step)
    }
}

/// How long output is read after the process is gone: some of it may still be in the pipe, but a
/// grandchild that holds the pipe open must not delay the end of the run.
#[derive(Clone, Debug)]
pub struct Drain {
    exited: Instant,
    last_read: Instant,
}

impl Drain {
    const QUIET: Duration = Duration::from_millis(250);
    const LIMIT: Duration = Duration::from_secs(2);

    pub fn new(exited: Instant) -> Self {
        Self {
            exited,
            last_read: exited,
        }
    }

    /// Something was read.
    pub fn read(&mut self, now: Instant) {
        self.last_read = now;
    }

    /// When to stop reading, if nothing comes until then.
    pub fn deadline(&self) -> Instant {
        (self.last_read + Self::QUIET).min(self.exited + Self::LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps with their times in seconds, when each is done as soon as it is due.
    fn escalate(mut ladder: Escalation, start: Instant) -> Vec<(u64, EscalationStep)> {
        let mut steps = Vec::new();
        while let Some(due) = ladder.due() {
            let step = ladder.step(due).unwrap();
            steps.push(((due - start).as_secs(), step));
            assert_eq!(ladder.step(due), None);
        }
        steps
    }

    #[test]
    fn each_step_comes_when_the_one_before_was_not_enough() {
        let now = Instant::now();
        let steps = [
            (0, EscalationStep::Interrupt),
            (5, EscalationStep::Terminate),
            (8, EscalationStep::Kill),
        ];
        assert_eq!(escalate(Escalation::signals(now, PATIENCE), now), steps);
        // Being asked first takes no longer in all.
        let steps = [
            (3, EscalationStep::Interrupt),
            (5, EscalationStep::Terminate),
            (8, EscalationStep::Kill),
        ];
        assert_eq!(escalate(Escalation::started(now, PATIENCE), now), steps);
    }

    #[test]
    fn a_late_step_gives_the_next_its_full_time() {
        let now = Instant::now();
        let mut ladder = Escalation::signals(now, PATIENCE);
        let late = now + Duration::from_secs(60);
        assert_eq!(ladder.step(late), Some(EscalationStep::Interrupt));
        assert_eq!(ladder.due(), Some(late + PATIENCE.interrupted));
    }

    #[test]
    fn output_is_read_until_it_is_quiet_or_the_limit_is_reached() {
        let at = |millis| Duration::from_millis(millis);
        let exited = Instant::now();
        let mut drain = Drain::new(exited);
        assert_eq!(drain.deadline(), exited + at(250));
        drain.read(exited + at(200));
        assert_eq!(drain.deadline(), exited + at(450));
        drain.read(exited + at(1900));
        assert_eq!(drain.deadline(), exited + at(2000));
    }
}
