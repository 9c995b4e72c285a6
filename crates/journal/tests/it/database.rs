//! A PostgreSQL server for the tests of this binary, and a database for each of them.

use std::io::Write as _;
use std::sync::{Mutex, OnceLock};

use journal::{Postgres, PostgresAddress, PostgresConfig};
use private_postgres::{Error, Pooler, Server, Sync};

/// What a test has left, connections among it.
const EMPTY: &str = "
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
    DELETE FROM linkspan.sessions; DELETE FROM linkspan.logs; DELETE FROM linkspan.events;
    DELETE FROM linkspan.frames; DELETE FROM linkspan.runs; DELETE FROM linkspan.asks;
    DELETE FROM linkspan.commands; DELETE FROM linkspan.natives; DELETE FROM linkspan.doomed;
    ALTER SEQUENCE linkspan.epochs RESTART; ALTER SEQUENCE linkspan.activities RESTART";

/// It has the schema, so that a test need not make it.
const TEMPLATE: &str = "with_schema";

/// Databases that tests have left in order. To empty one takes a tenth of the time that it takes to make one.
static USED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A database of one test.
pub(crate) struct Database {
    server: &'static Server,
    name: String,
    is_reused: bool,
}

impl Database {
    /// Whether there is a PostgreSQL to try.
    pub(crate) fn is_installed() -> bool {
        static IS_INSTALLED: OnceLock<bool> = OnceLock::new();
        *IS_INSTALLED.get_or_init(|| is_there("PostgreSQL", server().is_some()))
    }

    /// An empty one with the schema.
    pub(crate) fn new() -> Self {
        let used = USED.lock().unwrap().pop();
        let Some(name) = used else {
            let mut database = Self::to_spoil();
            database.is_reused = true;
            return database;
        };
        let database = Self {
            server: server().unwrap(),
            name,
            is_reused: true,
        };
        database.sql(EMPTY);
        database
    }

    /// The same for a test that changes the schema or the settings.
    pub(crate) fn to_spoil() -> Self {
        let server = server().unwrap();
        static HAS_TEMPLATE: OnceLock<()> = OnceLock::new();
        HAS_TEMPLATE.get_or_init(|| make_template(server));
        Self {
            server,
            name: server.create_database(TEMPLATE).unwrap(),
            is_reused: false,
        }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// Whether there is a pooler to try; like PostgreSQL itself.
    pub(crate) fn has_pooler() -> bool {
        static IS_INSTALLED: OnceLock<bool> = OnceLock::new();
        *IS_INSTALLED
            .get_or_init(|| Self::is_installed() && is_there("PgBouncer", pooler().is_some()))
    }

    /// Through a pooler, with a direct connection for hints.
    pub(crate) fn pooled_config(&self) -> PostgresConfig {
        let address = PostgresAddress {
            url: self.url_through(pooler().unwrap().port()),
            listen_url: Some(self.url()),
            ..PostgresAddress::default()
        };
        PostgresConfig::new(&address).unwrap()
    }

    /// Its address for clients of a proxy.
    pub(crate) fn url_through(&self, port: u16) -> String {
        self.server.url_through(port, &self.name)
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }

    pub(crate) fn enable_tls(&self, certificate: &str, key: &str) {
        self.server.enable_tls(certificate, key).unwrap();
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        self.server.sql(&self.name, sql).unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.is_reused && !std::thread::panicking() {
            USED.lock().unwrap().push(std::mem::take(&mut self.name));
        } else {
            // A failing test drops it too, and has more to say.
            self.server.drop_database(&self.name).ok();
        }
    }
}

pub(crate) fn config(url: &str) -> PostgresConfig {
    let address = PostgresAddress {
        url: url.to_owned(),
        ..PostgresAddress::default()
    };
    PostgresConfig::new(&address).unwrap()
}

fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let start = || match Server::start(Sync::Memory) {
        Err(Error::NotInstalled) => None,
        server => Some(server.unwrap()),
    };
    SERVER.get_or_init(start).as_ref()
}

fn pooler() -> Option<&'static Pooler> {
    static POOLER: OnceLock<Option<Pooler>> = OnceLock::new();
    let start = || match Pooler::start(server()?) {
        Err(Error::NotInstalled) => None,
        pooler => Some(pooler.unwrap()),
    };
    POOLER.get_or_init(start).as_ref()
}

/// Fails in continuous integration where a program is not installed; elsewhere that is said aloud.
fn is_there(program: &str, is_installed: bool) -> bool {
    let is_needed = std::env::var_os("CI").is_some();
    assert!(is_installed || !is_needed, "{program} is not installed");
    if !is_installed {
        // Not by a macro, whose output is shown for failed tests only.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "{program} is not installed: its tests are SKIPPED").unwrap();
    }
    is_installed
}

fn make_template(server: &'static Server) {
    server
        .sql("postgres", &format!("CREATE DATABASE {TEMPLATE}"))
        .unwrap();
    let open = move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let config = config(&server.url(TEMPLATE));
        drop(runtime.block_on(Postgres::open(config)).unwrap());
    };
    // The test that comes first runs on a thread of a runtime already.
    std::thread::spawn(open).join().unwrap();
    // A database that is in use cannot be copied.
    let close = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'with_schema'";
    server.sql("postgres", close).unwrap();
}
