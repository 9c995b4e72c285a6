//! The rate limit for failed authentication.
//!
//! Tokens as long as ours are always checked: they cannot be guessed, and several people may share
//! one address. Shorter tokens, which an operator may have chosen, are checked once a second after
//! ten failures within a minute.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Failures within [`WINDOW`] before the answer is "too many".
const MAX_FAILURES: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// Between two short tokens that are looked at after that.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of tracked peers; further ones are limited until an entry expires.
const MAX_PEERS: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct AuthRateLimit(Mutex<HashMap<IpAddr, PeerFailures>>);

#[derive(Debug)]
struct PeerFailures {
    n_failures: u32,
    since: Instant,
    /// When a short token was looked at last.
    looked: Instant,
}

/// The failures of a peer within [`WINDOW`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailureCount(u32);

impl FailureCount {
    pub(crate) fn is_too_many(self) -> bool {
        self.0 > MAX_FAILURES
    }

    /// Whether it is worth a line in the log. A page with an old token tries several routes and retries.
    pub(crate) fn is_news(self) -> bool {
        self.0 == 1 || self.0 == MAX_FAILURES + 1
    }
}

impl AuthRateLimit {
    /// Whether a short token of this peer is looked at.
    pub(crate) fn may_try(&self, peer: IpAddr, now: Instant) -> bool {
        let mut peers = self.peers(now);
        let is_full = peers.len() >= MAX_PEERS;
        let Some(peer) = peers.get_mut(&network(peer)) else {
            return !is_full;
        };
        if peer.n_failures < MAX_FAILURES || now.saturating_duration_since(peer.since) >= WINDOW {
            return true;
        }
        let may_look = now.saturating_duration_since(peer.looked) >= PAUSE;
        if may_look {
            peer.looked = now;
        }
        may_look
    }

    /// Counts a failure of this peer.
    pub(crate) fn record(&self, peer: IpAddr, now: Instant) -> FailureCount {
        let mut peers = self.peers(now);
        let peer = network(peer);
        if peers.len() >= MAX_PEERS && !peers.contains_key(&peer) {
            // Too many, and no news: requests from ever new addresses must not fill the log.
            return FailureCount(u32::MAX);
        }
        let fresh = PeerFailures {
            n_failures: 0,
            since: now,
            looked: now,
        };
        let peer = peers.entry(peer).or_insert(fresh);
        if now.saturating_duration_since(peer.since) >= WINDOW {
            (peer.n_failures, peer.since) = (0, now);
        }
        peer.n_failures = peer.n_failures.saturating_add(1);
        // The pause counts from the failure that reached the limit.
        if peer.n_failures == MAX_FAILURES {
            peer.looked = now;
        }
        FailureCount(peer.n_failures)
    }

    /// Those that are remembered; when they are many, those that need not be are forgotten.
    fn peers(&self, now: Instant) -> MutexGuard<'_, HashMap<IpAddr, PeerFailures>> {
        let mut peers = self.0.lock().expect("no panic while holding the lock");
        if peers.len() >= MAX_PEERS {
            // Only when it is full: it goes through all of them while others wait for the lock.
            peers.retain(|_, it| now.saturating_duration_since(it.since) < WINDOW);
        }
        peers
    }
}

/// An IPv6 client usually controls a whole /64 network.
fn network(peer: IpAddr) -> IpAddr {
    // A dual-stack socket shows IPv4 clients as `::ffff:a.b.c.d`: all of them would share one /64.
    match peer.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        ip @ IpAddr::V4(_) => ip,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn the_eleventh_failure_of_a_minute_is_one_too_many() {
        let rate_limit = AuthRateLimit::default();
        let now = Instant::now();
        let other = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let noted: Vec<bool> = (0..12)
            .map(|_| rate_limit.record(PEER, now).is_too_many())
            .collect();
        let mut expected = vec![false; 10];
        expected.extend([true, true]);
        assert_eq!(noted, expected);
        assert!(!rate_limit.record(other, now).is_too_many());
        assert!(!rate_limit.record(PEER, now + WINDOW).is_too_many());
    }

    #[test]
    fn after_ten_failures_a_short_token_is_looked_at_once_a_second() {
        let rate_limit = AuthRateLimit::default();
        let now = Instant::now();
        for _ in 0..10 {
            assert!(rate_limit.may_try(PEER, now));
            rate_limit.record(PEER, now);
        }
        let at = |millis| rate_limit.may_try(PEER, now + Duration::from_millis(millis));
        let looked: Vec<u64> = (0..5000).step_by(100).filter(|it| at(*it)).collect();
        assert_eq!(looked, [1000, 2000, 3000, 4000]);
        assert!(rate_limit.may_try(PEER, now + WINDOW));
        assert!(rate_limit.may_try(PEER, now + WINDOW));
    }

    #[test]
    fn the_addresses_of_one_network_are_one_peer() {
        let rate_limit = AuthRateLimit::default();
        let now = Instant::now();
        let ip = |text: &str| text.parse().unwrap();
        for n in 0..10 {
            assert!(
                !rate_limit
                    .record(ip(&format!("2001:db8::{n}")), now)
                    .is_too_many()
            );
        }
        assert!(rate_limit.record(ip("2001:db8::ffff:1"), now).is_too_many());
        assert!(!rate_limit.record(ip("2001:db8:0:1::1"), now).is_too_many());
        assert_eq!(network(ip("::ffff:127.0.0.1")), PEER);
    }

    #[test]
    fn a_flood_of_peers_is_bounded_and_forgotten() {
        let rate_limit = AuthRateLimit::default();
        let now = Instant::now();
        for n in 0..MAX_PEERS {
            let n = u32::try_from(n).unwrap();
            assert!(
                !rate_limit
                    .record(Ipv4Addr::from_bits(n).into(), now)
                    .is_too_many()
            );
        }
        let late = IpAddr::V4(Ipv4Addr::BROADCAST);
        assert!(rate_limit.record(late, now).is_too_many());
        assert!(!rate_limit.may_try(late, now));
        assert_eq!(rate_limit.0.lock().unwrap().len(), MAX_PEERS);
        assert!(!rate_limit.record(late, now + WINDOW).is_too_many());
        assert_eq!(rate_limit.0.lock().unwrap().len(), 1);
    }
}
