//! Calls: time-outs, and another try after a fault that passes.
//!
//! Every write has an id, so trying again is safe although the first try may have been done. What stays
//! unknown after all tries is [`Fault::Lost`].

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::client::Client;
use super::pool::Pool;
use crate::error::{Error, Fault, Result};
use crate::journal::Reply;

/// For all tries of a call together.
const TIMEOUT: Duration = Duration::from_secs(10);
/// More for each MiB that is sent.
const TIMEOUT_PER_MIB: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Does `work` on a connection, again and on another one where that helps, until the time is over.
pub(super) async fn call<'a, T>(
    pool: &Pool,
    n_bytes: usize,
    work: impl Fn(Arc<Client>) -> Reply<'a, T>,
) -> Result<T> {
    let n_mib = u32::try_from(n_bytes >> 20).unwrap_or(u32::MAX);
    let deadline = Instant::now() + TIMEOUT + TIMEOUT_PER_MIB * n_mib;
    let mut pause = FIRST_PAUSE;
    let mut is_lost = false;
    loop {
        let fault = match attempt(pool, deadline, &work).await {
            Err(Error::Storage(fault)) if fault.may_pass() => fault,
            done => return done,
        };
        is_lost |= matches!(fault, Fault::Lost);
        if Instant::now() + pause >= deadline {
            return Err(if is_lost { Fault::Lost } else { fault }.into());
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn attempt<'a, T>(
    pool: &Pool,
    deadline: Instant,
    work: &impl Fn(Arc<Client>) -> Reply<'a, T>,
) -> Result<T> {
    // All connections are in use for the whole time of the call.
    let lent = timeout_at(deadline, pool.get())
        .await
        .unwrap_or(Err(Fault::Busy))?;
    let done = timeout_at(deadline, work(lent.client()))
        .await
        .unwrap_or(Err(Fault::Lost.into()));
    match &done {
        // The others lead to the same server.
        Err(Error::Storage(Fault::Lost | Fault::ReadOnly)) => pool.clear(),
        Err(Error::Storage(_)) => (),
        Ok(_) | Err(_) => lent.release(),
    }
    done
}
