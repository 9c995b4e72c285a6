//! The rules of a takopi stream, over every recording cut off after every line.
//!
//! One `started` at most and one `completed` exactly per run, nothing after it but another run; ids
//! and titles that stay; every action of the default shape ended before its run.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fixtures::{Recording, converter, recordings};

#[test]
fn every_recording_keeps_the_rules_wherever_it_is_cut() {
    for engine in ["claude", "opencode", "gemini"] {
        for recording in recordings(engine) {
            for profile in [None, Some("upstream"), Some("debug")] {
                check(engine, &recording, profile);
            }
        }
    }
}

fn check(engine: &'static str, recording: &Recording, profile: Option<&str>) {
    let mut machine = converter(engine, "takopi", profile);
    let mut out = Vec::new();
    let mut rules = Rules::new(engine, profile != Some("upstream"));
    for (n, line) in recording
        .bytes
        .split_inclusive(|it| *it == b'\n')
        .enumerate()
    {
        let about = format!("{} cut before line {} ({profile:?})", recording.name, n + 1);
        let mut rest = Vec::new();
        machine.clone().end(&recording.end, &mut rest);
        let mut cut = rules.clone();
        cut.lines(&rest, &about);
        cut.end(&about);
        out.clear();
        machine.push(line, &mut out);
        rules.lines(&out, &about);
    }
    let about = format!("{} ({profile:?})", recording.name);
    out.clear();
    machine.end(&recording.end, &mut out);
    rules.lines(&out, &about);
    rules.end(&about);
}

#[derive(Clone)]
struct Rules {
    engine: &'static str,
    closes_all: bool,
    n_completed: usize,
    has_started: bool,
    /// The title of each action of the run, and whether it has ended.
    actions: BTreeMap<String, (Value, bool)>,
}

impl Rules {
    fn new(engine: &'static str, closes_all: bool) -> Self {
        Self {
            engine,
            closes_all,
            n_completed: 0,
            has_started: false,
            actions: BTreeMap::new(),
        }
    }

    fn lines(&mut self, out: &[u8], about: &str) {
        for line in out.split(|it| *it == b'\n').filter(|it| !it.is_empty()) {
            let event: Value = serde_json::from_slice(line).unwrap();
            assert_eq!(event["engine"], self.engine, "{about}");
            match event["type"].as_str().unwrap() {
                "started" => {
                    assert!(!self.has_started, "{about}: started twice");
                    self.has_started = true;
                }
                "action" => self.action(&event, about),
                "completed" => self.completed(&event, about),
                other => panic!("{about}: {other}"),
            }
        }
    }

    fn action(&mut self, event: &Value, about: &str) {
        let action = &event["action"];
        let (id, title) = (action["id"].as_str().unwrap(), &action["title"]);
        let is_end = event["phase"] == "completed";
        assert!(!id.is_empty() && action["detail"].is_object(), "{about}");
        assert_eq!(is_end, event["ok"].is_boolean(), "{about}: {event}");
        let known = self.actions.entry(id.to_owned());
        let (known_title, has_ended) = known.or_insert((title.clone(), false));
        assert!(!*has_ended, "{about}: {id} goes on after its end");
        assert_eq!(known_title, title, "{about}: {id} changed its title");
        *has_ended = is_end;
    }

    fn completed(&mut self, event: &Value, about: &str) {
        let is_ok = event["ok"].as_bool().unwrap();
        assert!(event["answer"].is_string(), "{about}");
        assert_ne!(is_ok, event["error"].is_string(), "{about}: {event}");
        assert_eq!(
            self.has_started,
            event["resume"].is_object(),
            "{about}: {event}"
        );
        for (id, (_, has_ended)) in std::mem::take(&mut self.actions) {
            assert!(has_ended || !self.closes_all, "{about}: {id} was left open");
        }
        self.has_started = false;
        self.n_completed += 1;
    }

    fn end(&self, about: &str) {
        let is_done = !self.has_started && self.actions.is_empty();
        assert!(is_done && self.n_completed > 0, "{about}: no end");
    }
}
