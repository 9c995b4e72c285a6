//! `kill -9` of a server while recordings play, agents work, prompts come and clients follow.
//!
//! The points are picked by numbers that look like chance and are the same in every run. Whatever a
//! client has heard is in the log once and in order, and a client that comes back with its cursors
//! hears the rest; every prompt that was taken has one run, every run has one end, and no process that
//! a server has started outlives it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, BufRead, Write};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value, json};

use crate::program::{Folder, machine};
use crate::served::{PATIENCE, Served, check, is_event, kind, serve};

/// How often a server is killed in one world.
const N_KILLS: usize = 50;
/// Set by `cargo xtask soak`: one kill for two of the runner's hostile agents, in worlds of [`N_KILLS`].
const SOAK: &str = "LINKSPAN_SOAK_RUNS";
/// A server lives for so many milliseconds at most once it listens.
const LONGEST_LIFE: u64 = 250;
/// What belongs to one life of a server carries its name here.
const LIFE: &str = "LINKSPAN_TEST_LIFE";
/// Until what a killed server has started is gone.
const LAST_BREATH: Duration = Duration::from_secs(20);
/// Prompts in one life.
const N_PROMPTS: usize = 4;

/// Speaks Claude's stream-json, slowly, and leaves something behind that has left its session.
const AGENT: &str = r#"
id=native-$$
while [ $# -gt 0 ]; do
  case $1 in --resume) id=$2 ;; esac
  shift
done
setsid sleep 60 > /dev/null 2>&1 < /dev/null &
turn=0
while read -r line; do
  case $line in
  *'"type":"user"'*)
    turn=$((turn + 1))
    echo '{"type":"system","subtype":"init","session_id":"'$id'","cwd":"/w","model":"m","tools":[]}'
    for n in 1 2 3 4; do
      echo '{"type":"assistant","session_id":"'$id'","message":{"id":"m'$$-$turn-$n'","role":"assistant","content":[{"type":"text","text":"step '$n'"}]}}'
      sleep 0.01
    done
    echo '{"type":"result","subtype":"success","is_error":false,"session_id":"'$id'","result":"done"}'
    ;;
  esac
done"#;

/// Numbers that look like chance, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A client that comes back, and what it has heard of each session.
struct Client {
    format: &'static str,
    heard: BTreeMap<String, Vec<Value>>,
}

fn cursor(message: &Value) -> Value {
    let cursor = message.get("cursor").unwrap_or(&message["seq"]);
    cursor.clone()
}

impl Client {
    fn new(format: &'static str) -> Self {
        Self {
            format,
            heard: BTreeMap::new(),
        }
    }

    fn since(&self, session: &str) -> Value {
        let heard = self.heard.get(session).and_then(|it| it.last());
        heard.map_or(json!(0), cursor)
    }

    /// Follows all sessions until the server is gone.
    fn follow(mut self, served: &Served, sessions: &[String]) -> JoinHandle<Self> {
        let since = sessions.iter().map(|it| (it.clone(), self.since(it)));
        let since: Map<String, Value> = since.collect();
        let mut socket = served.socket(self.format);
        socket.subscribe(json!({ "since": since }));
        thread::spawn(move || {
            while let Some(message) = socket.next() {
                self.hear(message);
            }
            self
        })
    }

    /// Follows one session over SSE until the server is gone.
    fn follow_one(mut self, served: &Served, session: String) -> JoinHandle<Self> {
        let stream = served.sse(&session, &self.since(&session).to_string());
        thread::spawn(move || {
            // What was cut in the middle was not heard.
            let lines = stream.split(b'\n').map_while(Result::ok);
            let mut data = None;
            for line in lines {
                let line = String::from_utf8_lossy(&line).into_owned();
                match (line.strip_prefix("data: "), line.is_empty(), data.take()) {
                    (Some(it), _, _) => data = Some(it.to_owned()),
                    (None, true, Some(data)) if data.contains("\"seq\":") => {
                        self.hear(serde_json::from_str(&data).unwrap());
                    }
                    _ => (),
                }
            }
            self
        })
    }

    fn hear(&mut self, message: Value) {
        if is_event(&message) {
            let message = without_addresses(&message);
            let session = message.get("sessionId").unwrap_or(&message["session"]);
            let session = session.as_str().unwrap().to_owned();
            self.heard.entry(session).or_default().push(message);
        }
    }

    /// Comes back one last time: everything is there once and in order.
    fn check(&self, served: &Served, session: &str) {
        let mut socket = served.socket(self.format);
        let mut heard = self.heard.get(session).cloned().unwrap_or_default();
        let rest = socket.rest(session, &self.since(session));
        heard.extend(rest.iter().map(without_addresses));
        let whole = socket.rest(session, &json!(0));
        let mut whole: Vec<Value> = whole.iter().map(without_addresses).collect();
        // A prompt whose answer was cut off may be worked on just now.
        whole.truncate(heard.len());
        assert_eq!(heard.len(), whole.len(), "{} {session}", self.format);
        assert_eq!(heard, whole, "{} {session}", self.format);
    }
}

/// An event without the address in its links: each server of this test has a port of its own.
fn without_addresses(event: &Value) -> Value {
    let text = event.to_string();
    let mut parts = text.split("http://127.0.0.1:");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.trim_start_matches(|it: char| it.is_ascii_digit()));
    }
    serde_json::from_str(&plain).unwrap()
}

/// A prompt that was sent; with its session, if its answer has come.
struct Prompt {
    text: String,
    taken: Option<String>,
}

/// A data directory, and everybody around it.
struct World {
    folder: Folder,
    dice: Dice,
    n_lives: usize,
    /// Sessions of agents that were answered with: a recording cannot be replied to.
    worked: Vec<String>,
    prompts: Vec<Prompt>,
    clients: [Client; 2],
    browser: Client,
}

impl World {
    fn new(seed: usize) -> Self {
        Self {
            folder: machine(&format!("crash-{seed}"), &[("claude", AGENT)], ""),
            dice: Dice(seed as u64),
            n_lives: 0,
            worked: Vec::new(),
            prompts: Vec::new(),
            clients: [Client::new("thread"), Client::new("linkspan")],
            browser: Client::new("linkspan"),
        }
    }

    fn life(&self, n: usize) -> String {
        format!("{LIFE}={}{n}", self.folder.path(""))
    }

    fn server(&mut self) -> std::process::Command {
        self.n_lives += 1;
        let mut command = serve(&self.folder);
        let life = self.life(self.n_lives);
        command.env(LIFE, life.split_once('=').unwrap().1);
        command
    }

    /// One server, from its start to its violent end.
    fn live(&mut self) {
        // One in eight does not even come to listen.
        if self.dice.roll(8) == 0 {
            let mut child = self.server().stderr(Stdio::null()).spawn().unwrap();
            thread::sleep(Duration::from_millis(self.dice.roll(80)));
            child.kill().unwrap();
            child.wait().unwrap();
            return self.no_process_is_left();
        }
        let command = &mut self.server();
        let served = Served::from(command, &self.folder);
        // Whoever had no guard any more was ended before the server said a word.
        assert_eq!(survivors(&self.life(self.n_lives - 1)), []);
        let sessions = served.sessions();
        let clients = std::mem::replace(&mut self.clients, [Client::new(""), Client::new("")]);
        let clients = clients.map(|it| it.follow(&served, &sessions));
        let browser = std::mem::replace(&mut self.browser, Client::new(""));
        let browser = match sessions.is_empty() {
            true => Err(browser),
            false => {
                let one = self.dice.roll(sessions.len() as u64) as usize;
                Ok(browser.follow_one(&served, sessions[one].clone()))
            }
        };
        let pause = Duration::from_millis(self.dice.roll(LONGEST_LIFE));
        let loses_guards = self.dice.roll(4) == 0;
        let plans: Vec<(Value, bool)> = (0..N_PROMPTS).map(|n| self.plan(n)).collect();
        let pid = served.pid();
        let is_dead = AtomicBool::new(false);
        let answers = thread::scope(|scope| {
            let submit = || submit_all(&served, &plans, &is_dead);
            let submitting = scope.spawn(submit);
            thread::sleep(pause);
            if loses_guards {
                // It cannot notice that they are gone.
                kill_process(pid, Signal::STOP).unwrap();
                for guard in children(pid) {
                    kill_process(guard, Signal::KILL).ok();
                }
            }
            is_dead.store(true, Ordering::SeqCst);
            kill_process(pid, Signal::KILL).unwrap();
            submitting.join().unwrap()
        });
        drop(served);
        self.clients = clients.map(|it| it.join().unwrap());
        self.browser = match browser {
            Ok(following) => following.join().unwrap(),
            Err(browser) => browser,
        };
        self.note(plans, answers);
        if !loses_guards {
            self.no_process_is_left();
        }
    }

    fn no_process_is_left(&self) {
        let life = self.life(self.n_lives);
        let began = Instant::now();
        while !survivors(&life).is_empty() {
            assert!(began.elapsed() < LAST_BREATH, "{:?}", survivors(&life));
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// What is to be asked for next, and whether an agent works on it.
    fn plan(&mut self, n: usize) -> (Value, bool) {
        let is_work = n % 2 == 1;
        let engine = if is_work { "claude" } else { "replay:tools" };
        let text = format!("prompt {}-{n}", self.n_lives);
        let mut fields = json!({ "prompt": text, "engine": engine });
        if !is_work {
            fields["speed"] = 40.into();
        }
        let one = self.dice.roll(self.worked.len() as u64 + 1) as usize;
        if let Some(session) = self.worked.get(one).filter(|_| is_work) {
            fields["session"] = session.clone().into();
        }
        (fields, is_work)
    }

    fn note(&mut self, plans: Vec<(Value, bool)>, answers: Vec<Option<String>>) {
        for ((fields, is_work), answer) in plans.into_iter().zip(answers) {
            self.prompts.push(Prompt {
                text: fields["prompt"].as_str().unwrap().to_owned(),
                taken: answer.clone(),
            });
            let is_new = |it: &String| is_work && !self.worked.contains(it);
            self.worked.extend(answer.filter(is_new));
        }
    }

    /// The events of a session once every prompt that was taken has had its run, and no run is open.
    fn settled(&self, served: &Served, session: &str) -> Vec<String> {
        let taken = self
            .prompts
            .iter()
            .filter(|it| it.taken.as_deref() == Some(session));
        let taken: Vec<String> = taken.map(|it| format!("\"{}\"", it.text)).collect();
        let began = Instant::now();
        loop {
            let events = served.events(session);
            let count = |wanted: &str| events.iter().filter(|it| kind(it) == wanted).count();
            let (n_started, n_ended) = (count("run.started"), count("run.ended"));
            let is_missing = |text: &&String| !events.iter().any(|it| it.contains(*text));
            let missing: Vec<&String> = taken.iter().filter(is_missing).collect();
            if n_started == n_ended && missing.is_empty() {
                return events;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "of {n_started} runs {n_ended} have ended, {missing:?} had none"
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// A last server finishes what is left; then everything is compared.
    fn check(&mut self) -> (usize, HashMap<String, usize>) {
        let command = &mut self.server();
        let served = Served::from(command, &self.folder);
        let mut prompts: HashMap<String, usize> = HashMap::new();
        let mut outcomes: HashMap<String, usize> = HashMap::new();
        let mut n_events = 0;
        for session in served.sessions() {
            let events = self.settled(&served, &session);
            check(&events);
            n_events += events.len();
            for event in events {
                let event: Value = serde_json::from_str(&event).unwrap();
                if event["type"] == "run.ended" {
                    let outcome = event["data"]["outcome"].as_str().unwrap();
                    *outcomes.entry(outcome.to_owned()).or_default() += 1;
                }
                let item = &event["data"]["item"];
                if event["type"] == "item.closed" && item["role"] == "user" {
                    let text = item["text"].as_str().unwrap_or_default();
                    *prompts.entry(text.to_owned()).or_default() += 1;
                }
            }
            for client in self.clients.iter().chain([&self.browser]) {
                client.check(&served, &session);
            }
        }
        for Prompt { text, taken } in &self.prompts {
            let n = prompts.get(text).copied().unwrap_or(0);
            let is_right = n == 1 || (n == 0 && taken.is_none());
            assert!(is_right, "{text} had {n} runs, taken: {taken:?}");
        }
        served.end(Signal::KILL);
        self.no_process_is_left();
        (n_events, outcomes)
    }
}

/// Gives prompts until the server is gone; the sessions that it answered with.
fn submit_all(
    served: &Served,
    plans: &[(Value, bool)],
    is_dead: &AtomicBool,
) -> Vec<Option<String>> {
    let mut answers = Vec::new();
    for (fields, _) in plans {
        let answer = served.try_request("POST", "/api/runs", &fields.to_string());
        answers.push(match answer {
            Ok(answer) => {
                assert_eq!(answer.status, 202, "{answer:?}");
                Some(answer.json()["session"].as_str().unwrap().to_owned())
            }
            Err(err) => {
                assert!(is_dead.load(Ordering::SeqCst), "{err}");
                None
            }
        });
    }
    answers
}

fn numbers(folder: &str) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|it| it.file_name().into_string().ok());
    names.filter_map(|it| it.parse().ok()).collect()
}

/// The processes of a life, with what they are.
pub(crate) fn survivors(life: &str) -> Vec<(i32, String)> {
    let belongs = |pid: &i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|it| *it == 0).any(|it| it == life.as_bytes())
    };
    let found = numbers("/proc").into_iter().filter(belongs);
    let command = |pid: i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).ok();
    found
        .map(|pid| (pid, command(pid).unwrap_or_default().replace('\0', " ")))
        .collect()
}

fn children(pid: Pid) -> Vec<Pid> {
    let threads = format!("/proc/{}/task", pid.as_raw_nonzero());
    let of_thread = |it: i32| fs::read_to_string(format!("{threads}/{it}/children"));
    let children = numbers(&threads)
        .into_iter()
        .filter_map(|it| of_thread(it).ok());
    let all: Vec<String> = children.collect();
    let pids = all.iter().flat_map(|it| it.split_whitespace());
    pids.filter_map(|it| Pid::from_raw(it.parse().ok()?))
        .collect()
}

#[test]
fn a_killed_server_loses_nothing_and_leaves_no_processes() {
    let runs = std::env::var(SOAK).ok();
    let n_worlds = runs
        .as_ref()
        .map_or(1, |it| (it.parse::<usize>().unwrap() / 2).div_ceil(N_KILLS));
    for seed in 1..=n_worlds {
        let began = Instant::now();
        let mut world = World::new(seed);
        for _ in 0..N_KILLS {
            world.live();
        }
        let (n_events, outcomes) = world.check();
        assert!(outcomes.contains_key("lost"), "{outcomes:?}");
        assert!(outcomes.contains_key("completed"), "{outcomes:?}");
        let clients = world.clients.iter().chain([&world.browser]);
        let n_heard: Vec<usize> = clients
            .map(|it| it.heard.values().map(Vec::len).sum())
            .collect();
        assert!(n_heard.iter().all(|it| *it > N_KILLS), "{n_heard:?}");
        if runs.is_some() {
            let seconds = began.elapsed().as_secs_f64();
            let line = format!(
                "soak: {N_KILLS} servers killed, {n_events} events, runs {outcomes:?}, heard {n_heard:?}, {seconds:.1} s\n"
            );
            io::stderr().write_all(line.as_bytes()).unwrap();
        }
    }
}
