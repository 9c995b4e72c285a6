//! Options for opening a journal in PostgreSQL.

use std::fmt;
use std::path::{Path, PathBuf};

use super::address::{Address, AddressError, ConnectionRules};
use super::password;
use crate::truncate::Truncate;

/// Enough that appends share a sync of the disk, few enough for ten nodes on a server's default limit.
const CONNECTIONS: usize = 8;

/// How to open a journal in PostgreSQL; see [`crate::Postgres::open`].
#[derive(Clone, Debug)]
pub struct PostgresConfig {
    pub(super) address: Address,
    /// For hints, when `address` leads to a pooler.
    pub(super) listen: Option<Address>,
    pub(super) n_connections: usize,
    pub(super) cut: Option<Truncate>,
}

/// An address as the user gives it.
#[derive(Clone, Default)]
pub struct PostgresAddress {
    /// `postgres://user@host/database`, with several hosts where there is a standby.
    pub url: String,
    /// A direct one for LISTEN, when `url` leads to a pooler.
    pub listen_url: Option<String>,
    /// In place of one in the URL.
    pub password: Option<String>,
    /// A file with nothing but the password.
    pub password_file: Option<PathBuf>,
    /// A file of the form of `.pgpass`, looked at when there is no password yet.
    pub pgpass: Option<PathBuf>,
    /// Certificates of one's own authorities.
    pub ca_file: Option<PathBuf>,
    /// Lets plain text leave the machine.
    pub allows_plain: bool,
}

/// The password is in it.
impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresAddress").finish_non_exhaustive()
    }
}

impl PostgresConfig {
    pub fn new(given: &PostgresAddress) -> Result<Self, AddressError> {
        Ok(Self {
            address: address(given, &given.url)?,
            listen: given
                .listen_url
                .as_deref()
                .map(|it| address(given, it))
                .transpose()?,
            n_connections: CONNECTIONS,
            cut: None,
        })
    }

    /// At most so many connections beside the one for hints, between 2 and 64.
    #[must_use]
    pub fn with_connections(self, n_connections: usize) -> Self {
        let n_connections = n_connections.clamp(2, 64);
        Self {
            n_connections,
            ..self
        }
    }

    /// Shortens long strings; see [`crate::Config::cut`].
    #[must_use]
    pub fn with_cut(self, cut: Option<Truncate>) -> Self {
        Self { cut, ..self }
    }
}

/// The address as people may see it: without the password.
impl fmt::Display for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

fn address(given: &PostgresAddress, url: &str) -> Result<Address, AddressError> {
    let rules = ConnectionRules {
        ca_file: given.ca_file.clone(),
        allows_plain: given.allows_plain,
    };
    let mut address = Address::parse(url, &rules)?;
    if let Some(password) = &given.password {
        address.set_password(password);
    } else if let Some(path) = &given.password_file {
        let password = password::read_private(path)?;
        address.set_password(password.trim_end_matches(['\r', '\n']));
    }
    let pgpass = given.pgpass.as_deref().filter(|it| it.exists());
    if let Some(path) = pgpass.filter(|_: &&Path| !address.has_password()) {
        address.look_up_password(path)?;
    }
    Ok(address)
}
