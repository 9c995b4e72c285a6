//! Any number of clients in one thread, for `cargo xtask bench serve`: each counts the events it gets.
//!
//! A client is a socket and its unread bytes; frames are found by their lengths, and looked into no further
//! than it takes to tell an event from a reply. Says `ready` when all are connected, then, when each has
//! had the last event, what they have seen; and stays until its input ends.

#![expect(clippy::print_stdout, reason = "what it has seen is what it is for")]

use std::cell::RefCell;
use std::env;
use std::fs::File;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model::Timestamp;
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{LocalSet, spawn_blocking, spawn_local};
use tokio::time::timeout;

/// Longer than any stream of the bench.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes read at once.
const READ_SIZE: usize = 16 << 10;

const USAGE: &str = "crowd ADDRESS PATH CLIENTS [BEGIN END [FILE]]";

type Failure = Box<dyn std::error::Error>;

/// What the clients have seen together.
struct Seen {
    /// How an event begins; whatever else there is does not count.
    begin: Vec<u8>,
    /// What the last event holds.
    end: Vec<u8>,
    /// When each event came to the first and to the last client.
    times: Vec<(Instant, Instant)>,
    n_delivered: usize,
    /// How long each delivery took from the time that its event names, in milliseconds.
    delays: Vec<f64>,
    /// Where the events go, for whoever wants to send them again.
    file: Option<File>,
}

/// What is said at the end.
#[derive(Serialize)]
struct CrowdReport {
    n_events: usize,
    n_delivered: usize,
    /// From the first event to the last.
    seconds: f64,
    /// How long each event took from the first client to the last.
    lag_millis: Vec<f64>,
    /// How long half of all deliveries took from the time that their events name, if they name one.
    delay_millis: Option<f64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (address, path, n_clients, rest) = match &args[..] {
        [address, path, n_clients, rest @ ..] => (*address, *path, n_clients.parse()?, rest),
        _ => return Err(USAGE.into()),
    };
    LocalSet::new()
        .run_until(gather(address, path, n_clients, rest))
        .await
}

async fn gather(address: &str, path: &str, n_clients: usize, rest: &[&str]) -> Result<(), Failure> {
    let mut clients = Vec::new();
    for _ in 0..n_clients {
        clients.push(connect(address, path).await?);
    }
    println!("ready");
    // Kept until the end: nobody leaves while the server is looked at.
    let mut streams = Vec::new();
    if let [begin, end, file @ ..] = rest {
        let seen = Rc::new(RefCell::new(Seen {
            begin: begin.as_bytes().to_vec(),
            end: end.as_bytes().to_vec(),
            times: Vec::new(),
            n_delivered: 0,
            delays: Vec::new(),
            file: file.first().map(File::create).transpose()?,
        }));
        let listening = clients.into_iter().map(|(stream, left)| {
            let seen = Rc::clone(&seen);
            spawn_local(async move { listen(stream, left, &seen).await })
        });
        let listening: Vec<_> = listening.collect();
        for client in listening {
            streams.push(timeout(PATIENCE, client).await???);
        }
        println!("{}", serde_json::to_string(&seen.borrow().report())?);
    } else {
        streams.extend(clients.into_iter().map(|it| it.0));
    }
    let ended = spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new()));
    ended.await??;
    drop(streams);
    Ok(())
}

/// A socket behind its handshake, and what was read beyond that.
async fn connect(address: &str, path: &str) -> Result<(TcpStream, Vec<u8>), Failure> {
    let mut stream = TcpStream::connect(address).await?;
    let token = env::var("LINKSPAN_TOKEN").map_or(String::new(), |it| {
        format!("Authorization: Bearer {it}\r\n")
    });
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{token}\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    let end = loop {
        if let Some(at) = find(&answer, b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut answer).await? == 0 {
            return Err("closed before the handshake was over".into());
        }
    };
    let left = answer.split_off(end);
    match answer.starts_with(b"HTTP/1.1 101 ") {
        true => Ok((stream, left)),
        false => Err(String::from_utf8_lossy(&answer).into()),
    }
}

/// Reads up to the last event.
async fn listen(
    mut stream: TcpStream,
    mut left: Vec<u8>,
    seen: &RefCell<Seen>,
) -> io::Result<TcpStream> {
    let mut n_events = 0;
    loop {
        let now = Instant::now();
        let mut rest = &left[..];
        let mut pong = None;
        let mut is_over = false;
        while let Some((opcode, payload, behind)) = split(rest) {
            rest = behind;
            match opcode {
                1 => is_over |= seen.borrow_mut().note(payload, &mut n_events, now)?,
                8 => return Err(io::ErrorKind::ConnectionAborted.into()),
                9 => pong = Some(masked_pong(payload)),
                _ => (),
            }
        }
        let n_read = left.len() - rest.len();
        left.drain(..n_read);
        if let Some(pong) = pong {
            stream.write_all(&pong).await?;
        }
        if is_over {
            return Ok(stream);
        }
        left.reserve(READ_SIZE);
        if stream.read_buf(&mut left).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

impl Seen {
    /// True when it was the last event; `n_events` is what this client has had.
    fn note(&mut self, payload: &[u8], n_events: &mut usize, now: Instant) -> io::Result<bool> {
        if !payload.starts_with(&self.begin) {
            return Ok(false);
        }
        match self.times.get_mut(*n_events) {
            Some((_, last)) => *last = now,
            None => {
                self.times.push((now, now));
                if let Some(file) = &mut self.file {
                    file.write_all(&[payload, b"\n"].concat())?;
                }
            }
        }
        *n_events += 1;
        self.n_delivered += 1;
        self.delays.extend(delay(payload));
        Ok(find(payload, &self.end).is_some())
    }

    fn report(&self) -> CrowdReport {
        let ends = self.times.first().zip(self.times.last());
        let lags = self.times.iter().map(|(first, last)| *last - *first);
        CrowdReport {
            n_events: self.times.len(),
            n_delivered: self.n_delivered,
            seconds: ends.map_or(0.0, |(first, last)| (last.0 - first.0).as_secs_f64()),
            lag_millis: lags.map(|it| it.as_secs_f64() * 1e3).collect(),
            delay_millis: self.delay(),
        }
    }

    fn delay(&self) -> Option<f64> {
        let mut delays = self.delays.clone();
        delays.sort_by(f64::total_cmp);
        delays.get(delays.len() / 2).copied()
    }
}

/// How long ago an event in the canonical form was. Its time is in whole milliseconds, half a one too early on
/// average.
fn delay(payload: &[u8]) -> Option<f64> {
    const KEY: &[u8] = b"\"at\":\"";
    let rest = &payload[find(payload, KEY)? + KEY.len()..];
    let text = rest.split(|it| *it == b'"').next()?;
    let at = Timestamp::parse(std::str::from_utf8(text).ok()?)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(now.as_secs_f64() * 1e3 - at.millis() as f64 - 0.5)
}

/// The first frame: its opcode, its payload, and what is behind it; none while it is not whole.
fn split(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let ([first, length], rest) = bytes.split_first_chunk()?;
    let (length, rest) = match length {
        126 => {
            let (length, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        127 => {
            let (length, rest) = rest.split_first_chunk()?;
            (usize::try_from(u64::from_be_bytes(*length)).ok()?, rest)
        }
        length => (usize::from(*length), rest),
    };
    let (payload, rest) = rest.split_at_checked(length)?;
    Some((first & 0x0f, payload, rest))
}

/// Masked with zeros, which is a mask like any other.
fn masked_pong(payload: &[u8]) -> Vec<u8> {
    // Pings hold at most 125 bytes.
    let length = 0x80 | (payload.len() as u8 & 0x7f);
    [&[0x8a, length, 0, 0, 0, 0], payload].concat()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|it| it == wanted)
}
