//! Retention: applies the configured limits to the journal while the hub runs.

use std::sync::Arc;
use std::time::Duration;

use journal::{Retention, Truncate};
use runner::config::Config;
use tokio::time::sleep;

use crate::shared::Shared;

/// Interval between retention passes; a pass over ten thousand sessions takes milliseconds.
const AGAIN: Duration = Duration::from_secs(600);
const DAY: u64 = 24 * 60 * 60;

/// The configured limits; `None` keeps everything.
pub fn retention(settings: &Config) -> Option<Retention> {
    let keep = settings.keep();
    let retention = Retention {
        age: keep
            .days
            .map(|it| Duration::from_secs(it.saturating_mul(DAY))),
        sessions: keep.sessions,
        bytes: keep.bytes,
    };
    Some(retention).filter(|it| *it != Retention::default())
}

/// How long a text may be in the journal; none keeps all of it.
pub fn truncation(settings: &Config) -> Option<Truncate> {
    let limit = settings.keep().cut_above?;
    Some(Truncate::above(
        usize::try_from(limit).unwrap_or(usize::MAX),
    ))
}

/// Periodically removes sessions beyond the limits.
pub(crate) async fn enforce(shared: Arc<Shared>, retention: Retention) {
    let journal = &shared.config.journal;
    loop {
        match journal.retain(retention).await {
            Ok(removed) if removed.sessions > 0 => {
                match shared.directory.find_gone(&**journal).await {
                    Ok(gone) => shared.directory.forget(&gone),
                    // A failed pass is retried the next time.
                    Err(err) => shared.report_trouble(&err),
                }
            }
            Ok(_) => (),
            Err(err) => shared.report_trouble(&err),
        }
        sleep(AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn settings(text: &str) -> Config {
        Config::parse(Some((Path::new("test.toml"), text)), |_| None).unwrap()
    }

    #[test]
    fn limits_are_those_of_the_config() {
        let none = settings("");
        assert_eq!((retention(&none), truncation(&none)), (None, None));
        let some = settings(
            "[journal]\nkeep_days = 2\nkeep_sessions = 3\nkeep_bytes = 4\ncut_above = 5000\n",
        );
        let limits = Retention {
            age: Some(Duration::from_secs(2 * 86_400)),
            sessions: Some(3),
            bytes: Some(4),
        };
        assert_eq!(retention(&some), Some(limits));
        assert_eq!(truncation(&some), Some(Truncate::above(5000)));
    }
}
