//! How often somebody may come with a wrong token before they are told to slow down.
//!
//! A right token is never refused for it: behind one address there may be several people, and a token
//! of 256 bits is not found by trying.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Failures within [`WINDOW`] before the answer is "too many".
const MAX_FAILURES: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// Peers remembered; who comes after that waits until somebody is forgotten.
const MAX_PEERS: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<IpAddr, Peer>>);

#[derive(Debug)]
struct Peer {
    n_failures: u32,
    since: Instant,
}

impl Failures {
    /// Takes a failure down; true when there were too many.
    pub(crate) fn note(&self, peer: IpAddr, now: Instant) -> bool {
        let mut peers = self.0.lock().expect("nobody panics while holding it");
        if peers.len() >= MAX_PEERS {
            peers.retain(|_, it| now.saturating_duration_since(it.since) < WINDOW);
        }
        if peers.len() >= MAX_PEERS && !peers.contains_key(&peer) {
            return true;
        }
        let fresh = Peer {
            n_failures: 0,
            since: now,
        };
        let peer = peers.entry(peer).or_insert(fresh);
        if now.saturating_duration_since(peer.since) >= WINDOW {
            (peer.n_failures, peer.since) = (0, now);
        }
        peer.n_failures = peer.n_failures.saturating_add(1);
        peer.n_failures > MAX_FAILURES
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_eleventh_failure_of_a_minute_is_one_too_many() {
        let failures = Failures::default();
        let now = Instant::now();
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let other = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let noted: Vec<bool> = (0..12).map(|_| failures.note(peer, now)).collect();
        let mut expected = vec![false; 10];
        expected.extend([true, true]);
        assert_eq!(noted, expected);
        assert!(!failures.note(other, now));
        assert!(!failures.note(peer, now + WINDOW));
    }
}
