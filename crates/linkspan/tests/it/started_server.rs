//! A server that another program has started for itself: it says where it listens in one line, ends with its
//! parent, and needs neither a port nor a token.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use expect_test::expect;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::program::{Folder, ran};
use crate::served::{PATIENCE, Socket, serve, serve_at};

struct Started {
    child: Child,
    stdin: Option<ChildStdin>,
    ready: Value,
}

impl Started {
    fn new(command: &mut Command) -> Self {
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pipes.stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        Self {
            stdin: child.stdin.take(),
            ready: serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}")),
            child,
        }
    }

    /// Waits for the end: the exit code, and what it has said to people.
    fn ended(mut self) -> (Option<i32>, String) {
        let began = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "it stays");
            thread::sleep(Duration::from_millis(5));
        }
        let mut said = String::new();
        let stderr = self.child.stderr.take();
        stderr.unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may be gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn over_socket(path: &str, request: &str) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn on_socket(folder: &Folder, name: &str) -> (Command, String) {
    let path = folder.path(name);
    (serve_at(folder, &format!("unix:{path}")), path)
}

#[test]
fn one_line_says_where_it_listens() {
    let folder = Folder::new("ready-json");
    let started = Started::new(serve(&folder).arg("--ready-json"));
    let listen = started.ready["listen"].as_str().unwrap().to_owned();
    assert!(!listen.ends_with(":0"), "{listen}");
    let url = format!("http://{listen}");
    let pid = started.child.id();
    let expected = json!({ "listen": listen, "pid": pid, "url": url, "page": url });
    assert_eq!(started.ready, expected);
    let answer = {
        let mut stream = std::net::TcpStream::connect(&listen).unwrap();
        write!(stream, "GET /healthz HTTP/1.0\r\nHost: {listen}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(answer.contains(" 200 "), "{answer}");
    kill_process(Pid::from_child(&started.child), Signal::TERM).unwrap();
    let (code, said) = started.ended();
    assert_eq!(code, Some(0));
    assert!(!said.contains("listening on"), "{said}");
}

#[test]
fn it_ends_with_its_stdin() {
    let folder = Folder::new("until-stdin");
    let mut started = Started::new(serve(&folder).args(["--ready-json", "--until-stdin-closes"]));
    // What is written there means nothing.
    let stdin = started.stdin.as_mut().unwrap();
    stdin.write_all(b"hello\n").unwrap();
    assert!(started.child.try_wait().unwrap().is_none());
    drop(started.stdin.take());
    assert_eq!(started.ended().0, Some(0));
}

#[test]
fn without_the_flag_it_outlives_its_stdin() {
    let folder = Folder::new("not-until-stdin");
    let mut started = Started::new(serve(&folder).arg("--ready-json"));
    drop(started.stdin.take());
    let listen = started.ready["listen"].as_str().unwrap();
    let mut stream = std::net::TcpStream::connect(listen).unwrap();
    write!(stream, "GET /healthz HTTP/1.0\r\nHost: {listen}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(" 200 "), "{answer}");
}

#[test]
fn a_socket_is_open_to_its_owner_without_a_token_and_gone_afterwards() {
    let folder = Folder::new("unix");
    let (mut command, path) = on_socket(&folder, "s.sock");
    let started = Started::new(command.arg("--ready-json"));
    let pid = started.child.id();
    let expected = json!({ "listen": format!("unix:{path}"), "pid": pid });
    assert_eq!(started.ready, expected);
    let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600, "{mode:o}");
    // Nobody has to know a name or a token, and none was made.
    let answer = over_socket(&path, "GET /api/me HTTP/1.0\r\nHost: anything\r\n\r\n");
    assert!(
        answer.contains(" 200 ") && answer.contains(r#""role":"admin""#),
        "{answer}"
    );
    assert!(!fs::exists(folder.path("data/token")).unwrap());
    // A page that comes in through some proxy is still one of others.
    let foreign = "GET /api/me HTTP/1.0\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n";
    let answer = over_socket(&path, foreign);
    assert!(answer.contains(" 403 "), "{answer}");
    let stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let url = "ws://localhost/ws?format=linkspan";
    let (socket, _) = tokio_tungstenite::tungstenite::client(url, stream).unwrap();
    let mut socket = Socket(socket);
    socket.subscribe(json!({}));
    kill_process(Pid::from_child(&started.child), Signal::TERM).unwrap();
    assert_eq!(started.ended().0, Some(0));
    assert!(!fs::exists(&path).unwrap());
}

#[test]
fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
    let folder = Folder::new("unix-again");
    let (mut command, path) = on_socket(&folder, "s.sock");
    // Dropping a listener leaves its file.
    drop(UnixListener::bind(&path).unwrap());
    let first = Started::new(command.arg("--ready-json"));
    let refused = |name: &str| {
        let (mut command, _) = on_socket(&folder, name);
        let shown = ran(command.output().unwrap()).shown();
        shown.replace(&folder.path(""), "DIR/")
    };
    let mut shown = refused("s.sock");
    let answer = over_socket(&path, "GET /healthz HTTP/1.0\r\nHost: x\r\n\r\n");
    assert!(answer.contains(" 200 "), "{answer}");
    folder.file("file", "precious");
    shown += &refused("file");
    shown += &refused("none/s.sock");
    let long = "long".repeat(40);
    shown += &refused(&long);
    assert_eq!(fs::read_to_string(folder.path("file")).unwrap(), "precious");
    let (mut command, _) = on_socket(&folder, "t.sock");
    shown += &ran(command.arg("--behind-proxy").output().unwrap()).shown();
    let shown = shown.replace(&long, "LONG");
    expect![[r#"
        linkspan: cannot listen on `unix:DIR/s.sock`: another program listens there

        hint: stop it, or name another file
        exit 3
        linkspan: cannot listen on `unix:DIR/file`: a file is there that is no socket

        hint: name another file
        exit 3
        linkspan: cannot listen on `unix:DIR/none/s.sock`: No such file or directory

        hint: the directory has to exist
        exit 3
        linkspan: cannot listen on `unix:DIR/LONG`: path must be shorter than SUN_LEN

        hint: the system limits a socket's path to about 100 bytes; take a shorter one
        exit 3
        linkspan: `--behind-proxy` is for a port, and `unix:PATH` has none

        hint: leave `--behind-proxy` out, or listen on an address such as `127.0.0.1:8787`
        exit 2
    "#]]
    .assert_eq(&shown);
    // One that was killed leaves its socket, and the next one takes its place.
    drop(first);
    assert!(fs::exists(&path).unwrap());
    let (mut command, _) = on_socket(&folder, "s.sock");
    let second = Started::new(command.arg("--ready-json"));
    assert_eq!(second.ready["listen"], format!("unix:{path}"));
}
