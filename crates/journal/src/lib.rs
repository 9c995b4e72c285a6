//! The durable log: sessions, their events by cursor, and who may write them.
//!
//! [`Journal`] is the contract, [`Sqlite`] keeps it in a file, `Postgres` in a database that many machines
//! share, [`Memory`] in memory for tests. One conformance suite (`tests/it`) tests every engine; nothing above the trait may know which one it
//! uses. An event is stored as its canonical line and never parsed here.

mod clock;
mod command;
mod config;
mod damage;
mod encode;
mod entry;
mod error;
mod journal;
mod lease;
mod line;
mod memory;
mod node;
mod open_note;
#[cfg(feature = "postgres")]
mod postgres;
mod report;
mod retention;
mod run;
mod session;
mod sqlite;
mod tail;
mod truncate;
mod watch;
mod write_id;

pub use clock::{Clock, ManualClock, Moment, SystemClock};
pub use command::{Command, CommandBody, CommandStatus, Enqueued, PromptTarget, WaitingAsk};
pub use config::Config;
pub use entry::{Batch, Deltas, Entry, Page, Read, Stored, StoredFrame};
pub use error::{Damage, Error, Fault, Result};
pub use journal::{Journal, Reply};
pub use lease::{Holder, Lease, Owner, Takeover};
pub use memory::Memory;
pub use node::Node;
pub use open_note::{LostData, LostSession, OpenNote};
#[cfg(feature = "postgres")]
pub use postgres::{AddressError, Postgres, PostgresAddress, PostgresConfig};
pub use report::{DamagedRow, Repaired, Report};
pub use retention::{Removed, Retention};
pub use run::{OpenRun, Overview, Run, RunEnd};
pub use session::{ListCursor, Listing, NewSession, Parent, Session, SessionQuery, State};
pub use sqlite::Sqlite;
pub use truncate::Truncate;
pub use watch::{Scope, Watch};
pub use write_id::WriteId;
