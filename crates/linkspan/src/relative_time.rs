//! Moments as people say them: how long ago, or the date and the time of day where they are.

use jiff::tz::TimeZone;
use model::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// How long ago it was; from a day on, when it was in the user's time zone.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    ago_at(then, now, &TimeZone::system())
}

fn ago_at(then: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let seconds = (now.millis() - then.millis()) / 1000;
    match seconds {
        0..MINUTE => "just now".to_owned(),
        MINUTE..HOUR => format!("{} min ago", seconds / MINUTE),
        HOUR..DAY => format!("{} h ago", seconds / HOUR),
        // Also times in the future, which a wrong clock can cause.
        _ => date(then, zone),
    }
}

fn date(moment: Timestamp, zone: &TimeZone) -> String {
    match jiff::Timestamp::from_millisecond(moment.millis()) {
        Ok(it) => {
            let local = it.to_zoned(zone.clone());
            local.strftime("%Y-%m-%d %H:%M").to_string()
        }
        Err(_) => moment.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::Offset;

    use super::*;

    #[test]
    fn times_are_printed_relative_to_now() {
        let zone = TimeZone::fixed(Offset::constant(2));
        let now = Timestamp::parse("2026-11-16T17:50:55.048Z").unwrap();
        let check = |seconds: i64, words: &str| {
            assert_eq!(ago_at(now.plus_millis(-1000 * seconds), now, &zone), words);
        };
        check(0, "just now");
        check(59, "just now");
        check(60, "1 min ago");
        check(5 * MINUTE + 3, "5 min ago");
        check(HOUR - 1, "59 min ago");
        check(HOUR, "1 h ago");
        check(DAY - 1, "23 h ago");
        check(DAY, "2026-11-15 19:50");
        check(-5, "2026-11-16 19:51");
    }
}
