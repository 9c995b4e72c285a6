//! A program that ends with this process, however that comes, and the directory that goes with it.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use tempfile::TempDir;

use crate::{Error, checked};

/// Runs a program until the end of its own standard input. Each line there kills the program, which is started
/// again, also when it ends by itself meanwhile.
const SCRIPT: &str = r#"dir=$1; shift
start() {
    "$@" >>"$dir/log" 2>&1 </dev/null & program=$!
}
start "$@"
while read -r _; do
    kill -KILL "$program"; wait "$program"
    start "$@"
    # What the killed one has left may be in its way for a moment.
    for try in 1 2 3 4 5 6 7 8 9 10; do
        sleep 0.3
        kill -0 "$program" 2>/dev/null && break
        start "$@"
    done
done
kill -INT "$program" && wait "$program"
rm -rf "$dir""#;

#[derive(Debug)]
pub(crate) struct Keeper {
    account: Option<Account>,
    dir: PathBuf,
    shell: Option<Child>,
    /// The shell waits for its end.
    stdin: Option<ChildStdin>,
}

impl Keeper {
    pub(crate) fn new() -> Result<Self, Error> {
        let account = Account::find()?;
        // The shell removes it, also when this process is killed.
        let dir = TempDir::with_prefix("linkspan-postgres-")?.keep();
        if let Some(account) = &account {
            account.own(&dir)?;
        }
        Ok(Self {
            account,
            dir,
            shell: None,
            stdin: None,
        })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// What the program has printed.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Makes a file that the account of the program can read, and nobody else.
    pub(crate) fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.dir.join(name);
        std::fs::write(&path, text)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        }
        if let Some(account) = &self.account {
            account.own(&path)?;
        }
        Ok(path)
    }

    /// Starts the program with its arguments.
    pub(crate) fn start(&mut self, program: &Command) -> Result<(), Error> {
        let mut shell = self.command(Path::new("sh"));
        shell.args(["-c", SCRIPT, "sh"]).arg(&self.dir);
        shell.arg(program.get_program()).args(program.get_args());
        shell
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // What ends this process may end its group, and the shell has to outlive it for a moment.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        let mut shell = shell.spawn()?;
        self.stdin = shell.stdin.take();
        self.shell = Some(shell);
        Ok(())
    }

    /// Kills the program and starts it again.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        match &mut self.stdin {
            Some(stdin) => stdin.write_all(b"restart\n"),
            None => Ok(()),
        }
    }

    /// A command of the account.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // The folder we are in may be closed to the account.
        command.current_dir("/");
        // What a user has set for other servers.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        #[cfg(unix)]
        if let Some(account) = &self.account {
            use std::os::unix::process::CommandExt;
            command.uid(account.uid).gid(account.gid);
        }
        command
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stdin.take());
        match &mut self.shell {
            // It has nothing left to do when it fails.
            Some(shell) => drop(shell.wait()),
            None => drop(std::fs::remove_dir_all(&self.dir)),
        }
    }
}

/// Somebody else than root, as whom a server runs when we are root: it refuses to run as root.
#[derive(Debug)]
struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// Absent when we are somebody else already.
    fn find() -> Result<Option<Self>, Error> {
        let output = checked(Command::new("id").arg("-u"))?;
        if output.stdout.trim_ascii() != b"0" {
            return Ok(None);
        }
        let passwd = std::fs::read_to_string("/etc/passwd")?;
        let of_name = |name| {
            let line = passwd
                .lines()
                .find(|it| it.split(':').next() == Some(name))?;
            let mut fields = line.split(':').skip(2).map(str::parse);
            let (uid, gid) = (fields.next()?.ok()?, fields.next()?.ok()?);
            Some(Self { uid, gid })
        };
        Ok(of_name("postgres").or_else(|| of_name("nobody")))
    }

    #[cfg(unix)]
    fn own(&self, path: &Path) -> io::Result<()> {
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
    }

    #[cfg(not(unix))]
    fn own(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}
