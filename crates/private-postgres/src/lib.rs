//! Test support: a PostgreSQL server of one's own, for as long as the process lives, and a pooler before it.
//!
//! It is made from the programs that the system has installed, in a temporary directory and on a free port of
//! the loopback address; no other server is touched. A shell waits beside it for the end of this process,
//! however that comes, and then stops the server and removes its files.

mod keeper;
mod pooler;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use self::keeper::Keeper;
pub use self::pooler::Pooler;

/// The superuser of a server.
const USER: &str = "linkspan";
/// Everybody may connect as anybody, without a password; only as this one not.
const GUARD: &str =
    "host all guarded 127.0.0.1/32 scram-sha-256\nhost all guarded ::1/128 scram-sha-256\n";
/// Until a server takes connections, on a machine with much to do.
const START_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Debian has them in the package `postgresql`.
    #[error("the programs of PostgreSQL are not installed")]
    NotInstalled,
    #[error("`{program}` failed: {output}")]
    Failed { program: String, output: String },
    #[error("the server takes no connections: {0}")]
    Silent(String),
    #[error("cannot make a server")]
    Io(
        #[from]
        #[source]
        io::Error,
    ),
}

/// Whether a commit waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// As everybody's server does: for measurements.
    Disk,
    /// Only to the memory of the system, which outlives the server: for tests.
    Memory,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    programs: PathBuf,
    port: u16,
    n_databases: AtomicU32,
    keeper: Keeper,
}

impl Server {
    pub fn start(sync: Sync) -> Result<Self, Error> {
        let programs = find_programs().ok_or(Error::NotInstalled)?;
        let keeper = Keeper::new()?;
        let data = keeper.dir().join("data");
        let mut initdb = keeper.command(&programs.join("initdb"));
        initdb.arg("-D").arg(&data).args(["-U", USER]);
        initdb.args(["-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        checked(&mut initdb)?;
        let rules = fs::read_to_string(data.join("pg_hba.conf"))?;
        keeper.write("data/pg_hba.conf", &format!("{GUARD}{rules}"))?;
        Self::run(programs, keeper, sync)
    }

    /// Starts a standby of this server: it has everything that this one has, and takes no writes.
    pub fn start_standby(&self, sync: Sync) -> Result<Self, Error> {
        let keeper = Keeper::new()?;
        let mut backup = keeper.command(&self.programs.join("pg_basebackup"));
        backup.arg("-D").arg(keeper.dir().join("data"));
        backup.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", USER]);
        // With the settings that let it follow this one.
        backup.args([
            "--checkpoint=fast",
            "--wal-method=stream",
            "--write-recovery-conf",
        ]);
        checked(&mut backup)?;
        Self::run(self.programs.clone(), keeper, sync)
    }

    /// Runs the server whose data are in the directory of the keeper.
    fn run(programs: PathBuf, mut keeper: Keeper, sync: Sync) -> Result<Self, Error> {
        let port = free_port()?;
        let mut server = Command::new(programs.join("postgres"));
        server.arg("-D").arg(keeper.dir().join("data"));
        for setting in settings(keeper.dir(), port, sync) {
            server.arg("-c").arg(setting);
        }
        keeper.start(&server)?;
        let server = Self {
            programs,
            port,
            n_databases: AtomicU32::new(0),
            keeper,
        };
        server.wait()?;
        Ok(server)
    }

    fn wait(&self) -> Result<(), Error> {
        let begun = Instant::now();
        while begun.elapsed() < START_TIMEOUT {
            let mut ready = self.keeper.command(&self.programs.join("pg_isready"));
            ready.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            if ready.status()?.success() {
                return Ok(());
            }
            sleep(Duration::from_millis(20));
        }
        Err(Error::Silent(self.keeper.log()))
    }

    /// Kills the server as a crash of it would, and starts it again; it may take seconds to recover.
    pub fn crash(&mut self) -> Result<(), Error> {
        Ok(self.keeper.restart()?)
    }

    /// Kills the server for good, as the end of its machine would.
    pub fn kill(self) -> Result<(), Error> {
        let pid = fs::read_to_string(self.keeper.dir().join("data/postmaster.pid"))?;
        let pid = pid.lines().next().unwrap_or_default();
        let mut kill = self.keeper.command(Path::new("kill"));
        checked(kill.args(["-KILL", pid]))?;
        Ok(())
    }

    /// What it has printed.
    pub fn log(&self) -> String {
        self.keeper.log()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of a database, through TCP.
    pub fn url(&self, database: &str) -> String {
        self.url_through(self.port, database)
    }

    /// The same through another port, where a proxy listens.
    pub fn url_through(&self, port: u16, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{port}/{database}")
    }

    /// Lets clients encrypt, with this certificate and its key.
    pub fn enable_tls(&self, certificate: &str, key: &str) -> Result<(), Error> {
        let certificate = self.keeper.write("cert.pem", certificate)?;
        let key = self.keeper.write("key.pem", key)?;
        for setting in [
            format!("ssl_cert_file = '{}'", certificate.display()),
            format!("ssl_key_file = '{}'", key.display()),
            "ssl = on".to_owned(),
        ] {
            self.sql("postgres", &format!("ALTER SYSTEM SET {setting}"))?;
        }
        self.sql("postgres", "SELECT pg_reload_conf()")?;
        // The server reads it a moment later.
        while self.sql("postgres", "SHOW ssl")?.trim() != "on" {
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Makes a database with what is in the database `template`, and returns its name.
    pub fn create_database(&self, template: &str) -> Result<String, Error> {
        let name = format!("db{}", self.n_databases.fetch_add(1, Ordering::Relaxed));
        self.sql(
            "postgres",
            &format!("CREATE DATABASE {name} TEMPLATE {template}"),
        )?;
        Ok(name)
    }

    pub fn drop_database(&self, name: &str) -> Result<(), Error> {
        let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        self.sql("postgres", &sql)?;
        Ok(())
    }

    /// Runs a statement as the superuser; returns what it prints, rows as lines.
    pub fn sql(&self, database: &str, sql: &str) -> Result<String, Error> {
        let mut psql = self.keeper.command(&self.programs.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        psql.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", USER]);
        psql.args(["-d", database, "-c", sql]);
        let output = checked(&mut psql)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The newest ones that the system has.
fn find_programs() -> Option<PathBuf> {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut versions: Vec<(u32, PathBuf)> = installed
        .flatten()
        .filter_map(|it| {
            Some((
                it.file_name().to_str()?.parse().ok()?,
                it.path().join("bin"),
            ))
        })
        .collect();
    versions.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let newest_first = versions.into_iter().rev().map(|it| it.1);
    let mut folders = newest_first.chain(std::env::split_paths(&path));
    folders.find(|it| it.join("initdb").exists() && it.join("postgres").exists())
}

fn settings(dir: &Path, port: u16, sync: Sync) -> [String; 5] {
    let fsync = match sync {
        Sync::Disk => "on",
        Sync::Memory => "off",
    };
    [
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        format!("unix_socket_directories={}", dir.display()),
        format!("fsync={fsync}"),
        "max_connections=200".to_owned(),
    ]
}

fn checked(command: &mut Command) -> Result<Output, Error> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(output);
    }
    let program = Path::new(command.get_program()).file_name();
    Err(Error::Failed {
        program: program.map_or_else(String::new, name),
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

fn name(program: &OsStr) -> String {
    program.to_string_lossy().into_owned()
}

/// Nothing keeps it free until the server takes it; the system gives out another one each time.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_runs_and_leaves_nothing_behind() {
        let server = match Server::start(Sync::Memory) {
            Err(Error::NotInstalled) => return,
            server => server.expect("a server"),
        };
        let database = server.create_database("template1").expect("a database");
        let printed = server.sql(&database, "SELECT current_database()");
        assert_eq!(printed.expect("a row").trim(), database);
        let (dir, port) = (server.keeper.dir().to_owned(), server.port());
        drop(server);
        assert!(!dir.exists());
        assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    }
}
