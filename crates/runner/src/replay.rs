//! An agent that is a recording: its frames, at their own pace or faster.
//!
//! The pace is that of the times in the frames: seconds since the start (`t`), or the time of day. Frames
//! without a time, such as pieces of text, are spread evenly over the gap between the times around them.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::time::Duration;

use formats::framing::{Framer, Framing};
use model::{Frame, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Frames read ahead of the next one with a time; more than that are not spread.
const MAX_AHEAD: usize = 4096;
/// Bytes read at once.
const READ_SIZE: usize = 64 * 1024;
/// Effectively forever.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// The pace of a recording without times.
const UNTIMED: Duration = Duration::from_millis(20);

/// A recording that is being played.
pub(crate) struct Replay {
    input: Box<dyn Read + Send>,
    framer: Framer,
    is_read: bool,
    ahead: VecDeque<TimedFrame>,
    /// How far the times of the frames that were handed out have come.
    last: Option<f64>,
    /// The wait before each frame up to the next one with a time.
    gap: Duration,
    /// Frames left that wait for `gap`.
    n_spread: usize,
    has_times: bool,
    speed: f64,
}

struct TimedFrame {
    frame: Vec<u8>,
    at: Option<f64>,
}

/// The next frame and how long to wait before it.
#[derive(Debug, PartialEq)]
pub(crate) struct NextFrame {
    pub(crate) wait: Duration,
    pub(crate) frame: Vec<u8>,
}

impl Replay {
    /// `speed` 2 is twice as fast; infinity does not wait at all.
    pub(crate) fn new(input: Box<dyn Read + Send>, framing: Framing, speed: f64) -> Self {
        Self {
            input,
            framer: Framer::new(framing),
            is_read: false,
            ahead: VecDeque::new(),
            last: None,
            gap: Duration::ZERO,
            n_spread: 0,
            has_times: false,
            speed,
        }
    }

    /// The next frame; none at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<NextFrame>> {
        if self.n_spread == 0 {
            self.look_ahead()?;
        }
        self.n_spread = self.n_spread.saturating_sub(1);
        let wait = self.gap;
        Ok(self.ahead.pop_front().map(|it| NextFrame {
            wait,
            frame: it.frame,
        }))
    }

    /// Reads up to the next frame with a time, and spreads the gap over those before it.
    fn look_ahead(&mut self) -> io::Result<()> {
        let timed = loop {
            let timed = self.ahead.iter().position(|it| it.at.is_some());
            if timed.is_some() || self.ahead.len() >= MAX_AHEAD || self.is_read {
                break timed;
            }
            self.read()?;
        };
        let Some(at) = timed else {
            // The rest has no time: a recording without any has a pace of its own.
            let untimed = if self.has_times {
                Duration::ZERO
            } else {
                UNTIMED
            };
            self.gap = self.scaled(untimed);
            self.n_spread = self.ahead.len();
            return Ok(());
        };
        self.has_times = true;
        // The timed frame itself waits for its share as well.
        self.n_spread = at + 1;
        let now = self.ahead[at].at.unwrap_or_default();
        // Recorded times may run backwards, which is no wait.
        let gap = (now - self.last.unwrap_or(now)).max(0.0);
        self.last = Some(now.max(self.last.unwrap_or(now)));
        let gap = Duration::try_from_secs_f64(gap).unwrap_or_default();
        self.gap = self.scaled(gap / u32::try_from(self.n_spread).unwrap_or(1));
        Ok(())
    }

    fn scaled(&self, gap: Duration) -> Duration {
        // A tiny speed gives more than a duration holds.
        Duration::try_from_secs_f64(gap.as_secs_f64() / self.speed).unwrap_or(FOREVER)
    }

    fn read(&mut self) -> io::Result<()> {
        let mut buf = vec![0; READ_SIZE];
        let n = match self.input.read(&mut buf) {
            Err(err) if err.kind() == io::ErrorKind::Interrupted => return Ok(()),
            read => read?,
        };
        let Self { framer, ahead, .. } = self;
        let mut keep = |frame: Frame<'_>| {
            let frame = match frame {
                Frame::Data(data) => data,
                // It cannot be played; its beginning shows the reader that something was there.
                Frame::Oversized { head, .. } => head,
            };
            ahead.push_back(TimedFrame {
                at: moment(frame),
                frame: frame.to_vec(),
            });
        };
        if n == 0 {
            self.is_read = true;
            framer.end(&mut keep);
        } else {
            framer.push(&buf[..n], &mut keep);
        }
        Ok(())
    }
}

/// The fields in which recordings have a time.
#[derive(Deserialize)]
struct FrameTimes<'a> {
    t: Option<f64>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    at: Option<&'a str>,
}

/// When a frame was recorded, in seconds since any moment.
fn moment(frame: &[u8]) -> Option<f64> {
    let times: FrameTimes<'_> = serde_json::from_slice(frame).ok()?;
    let seconds = |it: Timestamp| it.millis() as f64 / 1000.0;
    if let Some(t) = times.t {
        return Some(t);
    }
    if let Some(at) = times.at {
        return Timestamp::parse(at).map(seconds);
    }
    let timestamp = times.timestamp?.get();
    match timestamp.strip_prefix('"') {
        Some(text) => Timestamp::parse(text.trim_end_matches('"')).map(seconds),
        None => timestamp.parse().ok().map(|millis: f64| millis / 1000.0),
    }
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(lines: &'static str, speed: f64) -> Vec<(u128, String)> {
        let mut replay = Replay::new(Box::new(lines.as_bytes()), Framing::Lines, speed);
        let mut waits = Vec::new();
        while let Some(next) = replay.next().unwrap() {
            let frame = String::from_utf8(next.frame).unwrap();
            waits.push((next.wait.as_millis(), frame));
        }
        waits
    }

    fn paces(lines: &'static str, speed: f64) -> Vec<u128> {
        waits(lines, speed).into_iter().map(|it| it.0).collect()
    }

    #[test]
    fn frames_without_a_time_are_spread_over_the_gap() {
        let lines = "{\"t\":1.0}\n{\"a\":1}\n{\"a\":2}\n{\"t\":1.9}\n{\"a\":3}\n";
        let frames = [
            "{\"t\":1.0}",
            "{\"a\":1}",
            "{\"a\":2}",
            "{\"t\":1.9}",
            "{\"a\":3}",
        ];
        let expected: Vec<_> = [0, 300, 300, 300, 0]
            .into_iter()
            .zip(frames.map(str::to_owned))
            .collect();
        assert_eq!(waits(lines, 1.0), expected);
    }

    #[test]
    fn twice_as_fast_is_half_the_wait() {
        let lines = "{\"timestamp\":1000}\n{\"timestamp\":2000}\n";
        assert_eq!(paces(lines, 1.0), [0, 1000]);
        assert_eq!(paces(lines, 2.0), [0, 500]);
        assert_eq!(paces(lines, f64::INFINITY), [0, 0]);
    }

    #[test]
    fn times_of_day_count_and_do_not_run_backwards() {
        let lines = "{\"timestamp\":\"2026-01-01T00:00:01.000Z\"}\n\
                     {\"at\":\"2026-01-01T00:00:00.000Z\"}\n\
                     {\"timestamp\":\"2026-01-01T00:00:03.000Z\"}\n";
        assert_eq!(paces(lines, 1.0), [0, 0, 2000]);
    }

    #[test]
    fn a_recording_without_times_has_a_pace_of_its_own() {
        assert_eq!(paces("{}\n{}\n", 1.0), [20, 20]);
    }

    #[test]
    fn an_empty_recording_has_no_frames() {
        assert_eq!(paces("", 1.0), Vec::<u128>::new());
    }
}
