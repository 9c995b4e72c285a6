//! The HTTP client: no proxies of the environment, no redirects to other hosts, one pool for all requests.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use reqwest::{Client, Url, redirect};

use super::{CallError, chain, failed};

/// Redirects that are followed on the same host.
const MAX_REDIRECTS: usize = 3;

/// Clients keep their connections, so each is made once.
pub(super) fn client(connect: Duration) -> Result<Client, CallError> {
    static CLIENTS: OnceLock<Mutex<HashMap<Duration, Client>>> = OnceLock::new();
    let mut clients = CLIENTS
        .get_or_init(Mutex::default)
        .lock()
        // A panic elsewhere leaves the map whole: at worst a client is missing.
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = clients.get(&connect) {
        return Ok(client.clone());
    }
    // An error means that the program has chosen one before.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let client = Client::builder()
        .connect_timeout(connect)
        .redirect(redirect::Policy::custom(follow_same_host))
        // The key goes to the address of the config alone, not to a proxy of the environment.
        .no_proxy()
        .tcp_nodelay(true)
        .user_agent(concat!("linkspan/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|err| failed("bad_endpoint", chain(&err)))?;
    // By the timeout, because it is set per client and endpoints may differ in it.
    clients.insert(connect, client.clone());
    Ok(client)
}

/// Follows a redirect that stays where it is.
fn follow_same_host(attempt: redirect::Attempt<'_>) -> redirect::Action {
    // Scheme and port count as well: plain HTTP on the same host would show the key to others.
    let from = attempt.previous().last().map(Url::origin);
    match from == Some(attempt.url().origin()) && attempt.previous().len() <= MAX_REDIRECTS {
        true => attempt.follow(),
        false => attempt.stop(),
    }
}
