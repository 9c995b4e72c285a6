//! Wall time as data: milliseconds since 1970, written as RFC 3339 in UTC.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A moment some program stated; never used to measure how long something took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339, the only form the agents print.
    pub fn parse(text: &str) -> Option<Self> {
        let timestamp: jiff::Timestamp = text.parse().ok()?;
        Some(Self(timestamp.as_millisecond()))
    }

    /// The same moment `millis` later; saturates.
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }
}

/// A clock's own moment, to the millisecond; saturates.
impl From<SystemTime> for Timestamp {
    fn from(moment: SystemTime) -> Self {
        let millis = |it: Duration| i64::try_from(it.as_millis()).unwrap_or(i64::MAX);
        match moment.duration_since(UNIX_EPOCH) {
            Ok(since) => Self(millis(since)),
            Err(before) => Self(-millis(before.duration())),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Out of the calendar's range: agents may report any number.
        let moment =
            jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        write!(f, "{moment:.3}")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| de::Error::custom(format!("`{text}` is not an RFC 3339 time")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_a_clock_lie_on_both_sides_of_1970() {
        let second = Duration::from_millis(1500);
        assert_eq!(Timestamp::from(UNIX_EPOCH + second), Timestamp(1500));
        assert_eq!(Timestamp::from(UNIX_EPOCH - second), Timestamp(-1500));
    }

    #[test]
    fn prints_what_it_reads() {
        let text = "2026-11-15T17:55:06.947Z";
        assert_eq!(
            Timestamp::parse(text).map(|it| it.to_string()).as_deref(),
            Some(text)
        );
    }

    #[test]
    fn text_is_not_a_time() {
        assert_eq!(Timestamp::parse("yesterday"), None);
    }
}
