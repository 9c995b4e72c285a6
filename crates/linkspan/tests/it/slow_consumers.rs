//! Clients that do not read, and one that reads a kibibyte a second, beside fast ones: nobody waits for
//! them, the server does not grow with them, and when they come back they have lost nothing.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use serde_json::json;

use crate::program::{Folder, event};
use crate::served::{PATIENCE, Served, Socket, is_event};

/// With the words of each, several times what the hub and the sockets hold for anybody.
const N_NOTICES: u64 = 1500;
const N_BYTES: usize = 16_000;
/// Clients that never read.
const N_STOPPED: usize = 6;
const N_FAST: usize = 2;
/// A server that kept for the slow ones what they do not read would grow by all of it. This part of it is
/// room for the last frames of the stream, which everybody shares, for a batch on its way to each client,
/// and for what an allocator holds on a busy machine.
const PART: u64 = 4;
/// How much longer the fast ones may take because of the slow ones, on a machine that does other things.
const FACTOR: u32 = 3;

/// A recording of a run that says a lot.
fn recording(folder: &Folder) -> String {
    let notice = json!({ "level": "info", "code": "note", "text": "x".repeat(N_BYTES) });
    let notice = notice.to_string();
    let mut text = event(1, "run.started", r#"{"cause":"prompt"}"#);
    for seq in 2..N_NOTICES + 2 {
        text.push_str(&event(seq, "notice.raised", &notice));
    }
    let end = event(N_NOTICES + 2, "run.ended", r#"{"outcome":"completed"}"#);
    text.push_str(&end);
    format!("replay:{}", folder.file("long.jsonl", &text))
}

/// A stream that gives a kibibyte a second until it is told to hurry.
struct Trickle {
    stream: TcpStream,
    hurries: Arc<AtomicBool>,
}

impl Read for Trickle {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.hurries.load(Ordering::SeqCst) {
            return self.stream.read(buf);
        }
        let end = buf.len().min(1024);
        let read = self.stream.read(&mut buf[..end]);
        let second = Instant::now() + Duration::from_secs(1);
        while Instant::now() < second && !self.hurries.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(20));
        }
        read
    }
}

impl Write for Trickle {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.stream.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The numbers of the events that come, until the run ends; false when the server lets go before.
fn receive<S: Read + Write>(socket: &mut Socket<S>, heard: &mut Vec<u64>) -> bool {
    while let Some(message) = socket.next() {
        if message["type"] == "bridge.detached" {
            let last = heard.last().copied().unwrap_or(0);
            assert_eq!(message["cursor"], last, "it says where the client is");
        }
        if is_event(&message) {
            heard.push(message["seq"].as_u64().unwrap());
            if message["type"] == "run.ended" {
                return true;
            }
        }
    }
    false
}

/// Follows a session to its end, and comes back with the cursor as often as it takes.
fn follow(served: &Served, session: &str, heard: &mut Vec<u64>) {
    loop {
        let mut socket = served.socket("linkspan");
        let since = heard.last().copied().unwrap_or(0);
        socket.subscribe(json!({ "sessionId": session, "since": since }));
        if receive(&mut socket, heard) {
            return;
        }
    }
}

/// Plays the recording for some fast clients; how long it took the last of them.
fn play(served: &Arc<Served>, engine: &str) -> (String, Duration) {
    let began = Instant::now();
    let id = served.submit(&json!({ "prompt": "x", "engine": engine }));
    let fast: Vec<JoinHandle<Vec<u64>>> = (0..N_FAST)
        .map(|_| {
            let (served, id) = (Arc::clone(served), id.clone());
            thread::spawn(move || {
                let mut heard = Vec::new();
                follow(&served, &id, &mut heard);
                heard
            })
        })
        .collect();
    let fast: Vec<Vec<u64>> = fast.into_iter().map(|it| it.join().unwrap()).collect();
    let took = began.elapsed();
    let head = served.session(&id)["head"].as_u64().unwrap();
    let whole: Vec<u64> = (1..=head).collect();
    assert!(fast.iter().all(|it| *it == whole));
    (id, took)
}

/// The most memory that a process had at once, in bytes.
fn peak(served: &Served) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", served.child.id())).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() << 10
}

/// A connection that holds little of what is not read.
fn narrow(served: &Served) -> TcpStream {
    let stream = TcpStream::connect(&served.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    set_socket_recv_buffer_size(&stream, 64 << 10).unwrap();
    stream
}

/// Follows everything, at a kibibyte a second until it is told to hurry.
fn trickle(served: &Served, hurries: &Arc<AtomicBool>) -> JoinHandle<(Vec<u64>, bool)> {
    let stream = Trickle {
        stream: narrow(served),
        hurries: Arc::clone(hurries),
    };
    hurries.store(true, Ordering::SeqCst);
    let mut socket = served.socket_over(stream, "ws", "linkspan");
    socket.subscribe(json!({}));
    hurries.store(false, Ordering::SeqCst);
    thread::spawn(move || {
        let mut heard = Vec::new();
        let is_end = receive(&mut socket, &mut heard);
        (heard, is_end)
    })
}

fn stopped(served: &Served) -> Socket {
    let mut socket = served.socket_over(narrow(served), "ws", "linkspan");
    socket.subscribe(json!({}));
    socket
}

#[test]
fn slow_clients_block_no_one_and_lose_nothing() {
    let folder = Folder::new("slow");
    let engine = recording(&folder);
    let served = Arc::new(Served::start(&folder));
    let (_, alone) = play(&served, &engine);
    let before = peak(&served);

    let hurries = Arc::new(AtomicBool::new(false));
    let slow = trickle(&served, &hurries);
    let stopped: Vec<Socket> = (0..N_STOPPED).map(|_| stopped(&served)).collect();
    let (id, beside) = play(&served, &engine);
    assert!(!slow.is_finished(), "it was not slow");
    let grown = peak(&served) - before;
    let unread = (N_STOPPED as u64 + 1) * N_NOTICES * N_BYTES as u64;
    let limit = unread / PART;
    assert!(grown < limit, "{grown} bytes more, {limit} are allowed");
    let most = alone * FACTOR + Duration::from_secs(2);
    assert!(beside < most, "{beside:?}, without slow ones {alone:?}");

    hurries.store(true, Ordering::SeqCst);
    let (heard, is_end) = slow.join().unwrap();
    let mut left = vec![(heard, is_end)];
    left.extend(stopped.into_iter().map(|mut socket| {
        let mut heard = Vec::new();
        let is_end = receive(&mut socket, &mut heard);
        (heard, is_end)
    }));
    let head = served.session(&id)["head"].as_u64().unwrap();
    let whole: Vec<u64> = (1..=head).collect();
    // Who was let go comes back with its cursor; who was not was in time, and read on in the journal.
    for (mut heard, is_end) in left {
        assert!(heard == whole[..heard.len()]);
        if !is_end {
            follow(&served, &id, &mut heard);
        }
        assert!(heard == whole);
    }
}
