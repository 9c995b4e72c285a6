//! PgBouncer in front of a server, in transaction mode: what a connection sets or prepares may be gone with the
//! next statement.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::keeper::Keeper;
use crate::{Error, START_TIMEOUT, Server, USER, free_port};

/// A running pooler.
#[derive(Debug)]
pub struct Pooler {
    port: u16,
    keeper: Keeper,
}

impl Pooler {
    pub fn start(server: &Server) -> Result<Self, Error> {
        let program = find_program().ok_or(Error::NotInstalled)?;
        let mut keeper = Keeper::new()?;
        let port = free_port()?;
        let users = keeper.write("users", &format!("\"{USER}\" \"\"\n"))?;
        let config = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {}\n\
             pool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 400\n",
            server.port(),
            users.display()
        );
        let config = keeper.write("config", &config)?;
        let mut pooler = Command::new(program);
        pooler.arg(config);
        keeper.start(&pooler)?;
        let pooler = Self { port, keeper };
        pooler.wait()?;
        Ok(pooler)
    }

    fn wait(&self) -> Result<(), Error> {
        let begun = Instant::now();
        while begun.elapsed() < START_TIMEOUT {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return Ok(());
            }
            sleep(Duration::from_millis(20));
        }
        Err(Error::Silent(self.keeper.log()))
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Debian puts it where only root looks.
fn find_program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let mut programs = folders.map(|it| it.join("pgbouncer"));
    programs.find(|it: &PathBuf| Path::exists(it))
}
