//! Several programs on one journal: a session has one owner at a time, and who waits for it gets it in
//! order, also when owners and waiters are killed.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Folder, linkspan, machine, ran, run};
use crate::served::{PATIENCE, Served, check, kind};

/// Speaks Claude's stream-json, for one prompt or for many; works for as long as `hold` is there.
const AGENT: &str = r#"
id=native-$$
talks=no
while [ $# -gt 0 ]; do
  case $1 in
  --resume) id=$2 ;;
  --input-format) talks=yes ;;
  esac
  shift
done
turn=0
turn() {
  turn=$((turn + 1))
  echo '{"type":"system","subtype":"init","session_id":"'$id'","cwd":"/w","model":"m","tools":[]}'
  echo '{"type":"assistant","session_id":"'$id'","message":{"id":"m'$$-$turn'","role":"assistant","content":[{"type":"text","text":"on it"}]}}'
  while [ -e "$(dirname "$0")/hold" ]; do sleep 0.02; done
  echo '{"type":"result","subtype":"success","is_error":false,"session_id":"'$id'","result":"done"}'
}
if [ $talks = no ]; then
  turn
  exit
fi
while read -r line; do
  case $line in *'"type":"user"'*) turn ;; esac
done"#;

struct World(Folder);

impl World {
    fn new(name: &str) -> Self {
        Self(machine(name, &[("claude", AGENT)], ""))
    }

    fn hold(&self, is_held: bool) {
        match is_held {
            true => fs::write(self.0.path("bin/hold"), "").unwrap(),
            false => fs::remove_file(self.0.path("bin/hold")).unwrap(),
        }
    }

    fn run(&self, args: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap();
        let mut command = linkspan(&["run", "--engine", "claude", "--to", "linkspan"]);
        command
            .args(["--data-dir", &self.0.path("data")])
            .args(["--permissions", "deny"])
            .args(args)
            .env("PATH", format!("{}:{path}", self.0.path("bin")))
            .env("XDG_CONFIG_HOME", self.0.path("config"))
            .env("XDG_STATE_HOME", self.0.path("state"))
            .current_dir(self.0.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn sessions(&self) -> Vec<Value> {
        let data = self.0.path("data");
        let listed = run(&["sessions", "--json", "--data-dir", &data], b"");
        let lines = listed.stdout.lines();
        lines.map(|it| serde_json::from_str(it).unwrap()).collect()
    }
}

/// A run in a terminal's place, with what it says while it waits.
struct Waiter(Child, BufReader<std::process::ChildStderr>);

impl Waiter {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self(child, stderr)
    }

    /// Whom it says to wait for.
    fn waits_for(&mut self) -> u32 {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        let pid = line.trim().strip_prefix("linkspan: waiting for process ");
        pid.unwrap_or_else(|| panic!("{line}")).parse().unwrap()
    }

    fn ends(mut self) -> Option<i32> {
        let mut said = String::new();
        self.1.read_to_string(&mut said).unwrap();
        let ran = ran(self.0.wait_with_output().unwrap());
        let lines: Vec<&str> = said
            .lines()
            .filter(|it| !it.contains("waiting for"))
            .collect();
        assert_eq!(lines, Vec::<&str>::new());
        ran.code
    }
}

/// The prompts of a session in the order of their runs, of which no two overlap.
fn prompts(events: &[String]) -> Vec<String> {
    check(events);
    let mut is_open = false;
    let mut prompts = Vec::new();
    for line in events {
        let event: Value = serde_json::from_str(line).unwrap();
        match event["type"].as_str().unwrap() {
            "run.started" => assert!(!std::mem::replace(&mut is_open, true)),
            "run.ended" => is_open = false,
            "item.closed" if event["data"]["item"]["role"] == "user" => {
                let text = event["data"]["item"]["text"].as_str();
                prompts.push(text.unwrap().to_owned());
            }
            _ => (),
        }
    }
    prompts
}

fn outcomes(session: &Value) -> Vec<&str> {
    let runs = session["runs"].as_array().unwrap().iter().rev();
    runs.map(|it| it["outcome"].as_str().unwrap_or("open"))
        .collect()
}

#[test]
fn two_servers_never_have_a_session_both() {
    let world = World::new("owners-two");
    let servers = [Served::start(&world.0), Served::start(&world.0)];
    let first = json!({ "prompt": "prompt 0", "engine": "claude" });
    let id = servers[0].submit(&first);
    let mut expected = vec!["prompt 0".to_owned()];
    for n in 1..8 {
        let text = format!("prompt {n}");
        servers[n % 2].submit(&json!({ "prompt": text, "session": id }));
        expected.push(text);
    }
    servers[0].until(&id, |it| outcomes(it).len() == 8);
    let session = servers[1].idle(&id);
    assert_eq!(outcomes(&session), ["completed"; 8]);
    let events = servers[0].events(&id);
    assert_eq!(prompts(&events), expected);
    assert_eq!(servers[1].events(&id), events);
}

#[test]
fn a_server_takes_over_from_a_killed_one() {
    let world = World::new("owners-killed");
    world.hold(true);
    let [killed, other] = [Served::start(&world.0), Served::start(&world.0)];
    let first = json!({ "prompt": "one", "engine": "claude" });
    let id = killed.submit(&first);
    killed.until(&id, |it| it["state"] == "running");
    killed.submit(&json!({ "prompt": "two", "session": id }));
    killed.submit(&json!({ "prompt": "three", "session": id }));
    killed.end(Signal::KILL);
    world.hold(false);
    let began = Instant::now();
    let session = other.until(&id, |it| it["state"] == "idle" && outcomes(it).len() == 3);
    assert_eq!(outcomes(&session), ["lost", "completed", "completed"]);
    assert_eq!(prompts(&other.events(&id)), ["one", "two", "three"]);
    // Nobody has to wait until a lease has run out.
    assert!(began.elapsed() < Duration::from_secs(25));
}

#[test]
fn a_server_and_a_run_take_turns() {
    let world = World::new("owners-turns");
    world.hold(true);
    let served = Served::start(&world.0);
    let first = Waiter::start(world.run(&["one"]));
    let began = Instant::now();
    let native = loop {
        let found = world.sessions();
        let native = found.first().and_then(|it| it["native"].as_str());
        if let Some(native) = native {
            break native.to_owned();
        }
        assert!(began.elapsed() < PATIENCE);
    };
    let prompt = json!({ "prompt": "two", "session": native });
    let answer = served.request("POST", "/api/runs", &prompt.to_string());
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(answer.json()["position"], 1);
    let id = answer.json()["session"].as_str().unwrap().to_owned();
    // It is the run's, for as long as that takes.
    thread::sleep(Duration::from_millis(500));
    assert_eq!(outcomes(&served.session(&id)), ["open"]);
    let hasty = world
        .run(&["--no-wait", "--resume", &native, "no"])
        .output();
    let hasty = ran(hasty.unwrap());
    assert_eq!(hasty.code, Some(5), "{}", hasty.stderr);
    assert!(hasty.stderr.contains("is in use by process"), "{hasty:?}");
    let removed = served.request("DELETE", &format!("/api/sessions/{id}"), "");
    assert_eq!((removed.status, &*removed.code()), (409, "session_busy"));
    world.hold(false);
    assert_eq!(first.ends(), Some(0));
    served.until(&id, |it| {
        it["state"] == "idle" && outcomes(it) == ["completed", "completed"]
    });
    // The server keeps the agent, and lets go of it for who wants the session.
    let began = Instant::now();
    let mut third = Waiter::start(world.run(&["--resume", &native, "three"]));
    assert_eq!(third.waits_for(), served.child.id());
    assert_eq!(third.ends(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(prompts(&served.events(&id)), ["one", "two", "three"]);
    let removed = served.request("DELETE", &format!("/api/sessions/{id}"), "");
    assert_eq!(
        (removed.status, &*removed.body),
        (200, r#"{"removed":true}"#)
    );
    assert_eq!(world.sessions(), Vec::<Value>::new());
}

#[test]
fn waiters_get_a_session_in_order() {
    let world = World::new("owners-order");
    let data = world.0.path("data");
    let begun = ran(world.run(&["zero"]).output().unwrap());
    assert_eq!(begun.code, Some(0), "{}", begun.stderr);
    let session = world.sessions().remove(0);
    let id = session["id"].as_str().unwrap();
    let native = session["native"].as_str().unwrap();
    world.hold(true);
    let resume = |text: &str| Waiter::start(world.run(&["--resume", native, text]));
    let mut holder = resume("one");
    let mut stdout = BufReader::new(holder.0.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    let began = Instant::now();
    let mut waiters: Vec<Waiter> = Vec::new();
    for n in 2..8 {
        let mut waiter = resume(&n.to_string());
        let before = waiters.first().unwrap_or(&holder);
        assert_eq!(waiter.waits_for(), before.0.id());
        waiters.push(waiter);
    }
    // Those that were killed do not keep the others waiting, and the order stays.
    for n in [3, 0] {
        let mut killed = waiters.remove(n);
        killed.0.kill().unwrap();
        killed.0.wait().unwrap();
    }
    world.hold(false);
    let drained = thread::spawn(move || stdout.read_to_string(&mut String::new()).unwrap());
    assert_eq!(holder.ends(), Some(0));
    drained.join().unwrap();
    for waiter in waiters {
        assert_eq!(waiter.ends(), Some(0));
    }
    assert!(began.elapsed() < PATIENCE);
    let replay = ["replay", id, "--to", "linkspan", "--data-dir", &data];
    let events: Vec<String> = run(&replay, b"")
        .stdout
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(prompts(&events), ["zero", "one", "3", "4", "6", "7"]);
    assert_eq!(kind(&events[events.len() - 1]), "run.ended");
}

#[test]
fn a_session_is_removed_unless_something_runs_in_it() {
    let world = World::new("owners-remove");
    world.hold(true);
    let data = world.0.path("data");
    let remove = |id: &str| run(&["sessions", "--remove", id, "--data-dir", &data], b"");
    assert_eq!(remove("none").code, Some(2));
    let running = Waiter::start(world.run(&["one"]));
    let began = Instant::now();
    let native = loop {
        let found = world.sessions();
        let native = found.first().and_then(|it| it["native"].as_str());
        if let Some(native) = native {
            break native.to_owned();
        }
        assert!(began.elapsed() < PATIENCE);
    };
    let refused = remove(&native);
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    assert!(refused.stderr.contains("is in use"), "{}", refused.stderr);
    world.hold(false);
    assert_eq!(running.ends(), Some(0));
    let removed = remove(&native);
    assert_eq!((removed.code, &*removed.stderr), (Some(0), ""));
    assert_eq!(world.sessions(), Vec::<Value>::new());
    assert_eq!(remove(&native).code, Some(2));
}
