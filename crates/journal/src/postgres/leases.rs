//! Who may write a session, judged by the clock of the database.

use std::time::Duration;

use model::SessionId;

use super::client::Client;
use super::log::LogHead;
use super::query::{Query, get, number};
use super::text::Text;
use crate::error::{Error, Fault, Result};
use crate::lease::{Lease, Owner, Takeover};
use crate::write_id::WriteId;

/// The clock is read anew: `now()` is the begin of the transaction, and would make leases short.
const ACQUIRE: &str = "UPDATE linkspan.logs SET
  epoch = CASE WHEN granted = $5 THEN epoch ELSE nextval('linkspan.epochs') END,
  owner = $2, until = clock_timestamp() + $3 * interval '1 ms', granted = $5
WHERE session = (SELECT key FROM linkspan.sessions WHERE id = $1)
  AND (owner IS NULL OR until <= clock_timestamp() OR owner = $4 OR granted = $5)
RETURNING epoch, head, session";

/// A lease, and the key of its session.
pub(super) async fn acquire(
    client: &Client,
    session: &SessionId<'_>,
    owner: &Owner,
    ttl: Duration,
    takeover: &Takeover,
    id: WriteId,
) -> Result<(Lease, i64)> {
    let dead = match takeover {
        Takeover::Lapsed => None,
        Takeover::Dead(owner) => Some(owner.as_str()),
    };
    let query = Query::new(ACQUIRE)
        .text(session.as_str())
        .text(owner.as_str())
        .bind(millis(ttl))
        .bind(dead.map(Text::from))
        .id(id);
    let Some(row) = query.row(client).await? else {
        return Err(held(client, session).await?);
    };
    let lease = Lease {
        session: session.clone().into_owned(),
        owner: owner.clone(),
        epoch: number(&row, 0)?,
        head: number(&row, 1)?,
    };
    Ok((lease, get(&row, 2)?))
}

/// Why a session was not acquired.
async fn held(client: &Client, session: &SessionId<'_>) -> Result<Error> {
    let log = LogHead::read(client, session).await?;
    let session = session.clone().into_owned();
    Ok(match log.owner {
        Some(owner) => Error::Held { session, owner },
        // It was released just now: another try gets it.
        None => Fault::Busy.into(),
    })
}

const RENEW: &str = "UPDATE linkspan.logs SET until = clock_timestamp() + $3 * interval '1 ms'
WHERE session = (SELECT key FROM linkspan.sessions WHERE id = $1) AND epoch = $2 RETURNING session";

pub(super) async fn renew(client: &Client, lease: &Lease, ttl: Duration) -> Result<()> {
    let query = Query::new(RENEW)
        .text(lease.session.as_str())
        .bind(lease.epoch as i64)
        .bind(millis(ttl));
    match query.row(client).await? {
        Some(_) => Ok(()),
        None => Err(fenced(client, lease).await),
    }
}

/// A new epoch also fences an append of this owner that is still on its way.
const RELEASE: &str = "UPDATE linkspan.logs
SET epoch = nextval('linkspan.epochs'), owner = NULL, until = NULL
WHERE session = (SELECT key FROM linkspan.sessions WHERE id = $1) AND epoch = $2 RETURNING session";

/// Returns the key of the session, if there was something to release.
pub(super) async fn release(client: &Client, lease: &Lease) -> Result<Option<i64>> {
    let query = Query::new(RELEASE)
        .text(lease.session.as_str())
        .bind(lease.epoch as i64);
    let row = query.row(client).await?;
    row.map(|it| get(&it, 0)).transpose()
}

/// Why a lease was not accepted.
pub(super) async fn fenced(client: &Client, lease: &Lease) -> Error {
    match LogHead::fence(client, lease).await {
        Err(err) => err,
        // It is the right one now: another try is accepted.
        Ok(_) => Fault::Busy.into(),
    }
}

fn millis(ttl: Duration) -> i64 {
    // Beyond a century the sum would not be a time any more.
    let longest = 100 * 365 * 24 * 3600 * 1000;
    i64::try_from(ttl.as_millis())
        .unwrap_or(longest)
        .min(longest)
}
