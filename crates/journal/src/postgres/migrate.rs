//! The schema, made and brought up to date by whoever comes first.
//!
//! Steps only add, so that nodes of the version before can go on writing; `compatible` in the database is the
//! oldest version that may.

use super::client::Client;
use super::query::{Query, get};
use crate::error::{Error, Fault, Result};

/// What takes the schema from the version of its index to the next; a released step never changes.
const STEPS: &[&str] = &[include_str!("schema.sql")];

/// Who may do what; it can be run again.
pub(super) const ROLES: &str = include_str!("roles.sql");

const KNOWN: i32 = STEPS.len() as i32;

pub(super) async fn migrate(client: &Client) -> Result<()> {
    // The usual case takes no lock.
    if version(client).await? >= KNOWN {
        return Ok(());
    }
    match upgrade(client).await {
        Err(Error::Storage(Fault::Database(err))) => Err(Fault::refused(
            format!("the schema cannot be made: {}", describe(&*err)),
            "run `linkspan journal init` as the owner of the database",
        )
        .into()),
        upgraded => upgraded,
    }
}

async fn upgrade(client: &Client) -> Result<()> {
    let execute = async |sql: &str| -> Result<()> {
        Ok(client.batch_execute(sql).await.map_err(Fault::from)?)
    };
    execute(
        "BEGIN; SET LOCAL lock_timeout = '5s';
         SELECT pg_advisory_xact_lock(hashtextextended('linkspan migrations', 0))",
    )
    .await?;
    // Another node may have been faster.
    let found = version(client).await?;
    let n_done = usize::try_from(found).unwrap_or_default();
    for step in STEPS.iter().skip(n_done) {
        execute(step).await?;
    }
    if found < KNOWN {
        execute(&format!("UPDATE linkspan.meta SET version = {KNOWN}")).await?;
    }
    execute("COMMIT").await
}

/// Everything for an empty database.
pub(super) fn sql() -> String {
    let steps = STEPS.concat();
    format!("BEGIN;\n{steps}\nUPDATE linkspan.meta SET version = {KNOWN};\n\n{ROLES}COMMIT;\n")
}

/// The version of the schema, 0 when there is none. Fails when this program is too old to write it.
async fn version(client: &Client) -> Result<i32> {
    // Not `to_regclass`, which may remember within a transaction that there was none.
    let exists = "SELECT 1 FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'linkspan'
        WHERE c.relname = 'meta'";
    if Query::new(exists).row(client).await?.is_none() {
        return Ok(0);
    }
    let meta = "SELECT version, compatible FROM linkspan.meta";
    let Some(row) = Query::new(meta).row(client).await? else {
        return Ok(0);
    };
    let (version, compatible): (i32, i32) = (get(&row, 0)?, get(&row, 1)?);
    if compatible > KNOWN {
        let (found, known) = (version.into(), KNOWN.into());
        return Err(Fault::Newer { found, known }.into());
    }
    Ok(version)
}

fn describe(err: &(dyn std::error::Error + 'static)) -> String {
    err.source()
        .map_or_else(|| err.to_string(), ToString::to_string)
}
