//! A journal that was altered, cut short or deleted: what every reader is shown, and what `doctor` does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Folder, Ran, linkspan, ran};
use crate::served::{Served, check};

/// A command on the data of `folder`, away from the settings of whoever runs the tests.
fn command(folder: &Folder, args: &[&str]) -> Ran {
    let output = linkspan(args)
        .args(["--data-dir", &folder.path("data")])
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .env("XDG_STATE_HOME", folder.path("state"))
        .env("PATH", folder.path("bin"))
        .env("HOME", folder.path("home"))
        .output()
        .unwrap();
    ran(output)
}

/// Plays a recording to its end in a new session.
fn play(served: &Served) -> String {
    let prompt = json!({ "prompt": "x", "engine": "replay:tools", "speed": 0 });
    let id = served.submit(&prompt);
    served.idle(&id);
    id
}

/// Stops a server, and has the log of changes folded into the journal, as whoever closes it last does.
fn settle(served: Served, folder: &Folder) {
    served.stop();
    let wal = folder.path("data/journal.sqlite-wal");
    let began = Instant::now();
    // A program may end before its own connections are closed; the next one folds the log then.
    while began.elapsed() < Duration::from_secs(20) {
        let looked = command(folder, &["sessions"]);
        assert_eq!(looked.code, Some(0), "{}", looked.stderr);
        if !fs::exists(&wal).unwrap() {
            return;
        }
    }
    panic!("somebody has the journal open");
}

/// Flips a bit of the first byte behind `text` in the journal.
fn flip_behind(folder: &Folder, text: &str) {
    let path = folder.path("data/journal.sqlite");
    let mut bytes = fs::read(&path).unwrap();
    let mut windows = bytes.windows(text.len());
    let place = windows.rposition(|it| it == text.as_bytes()).unwrap();
    bytes[place + text.len()] ^= 1;
    fs::write(&path, bytes).unwrap();
}

/// What `doctor` says about the journal: levels and texts.
fn diagnosis(folder: &Folder) -> (Option<i32>, Vec<(String, String)>) {
    let ran = command(folder, &["doctor", "--json"]);
    let lines = ran.stdout.lines().map(|it| {
        let finding: Value = serde_json::from_str(it).unwrap();
        let text = |key: &str| finding[key].as_str().unwrap().to_owned();
        (text("about"), text("level"), text("text"))
    });
    let journal = lines.filter(|it| it.0 == "journal");
    (ran.code, journal.map(|it| (it.1, it.2)).collect())
}

fn is_notice(event: &Value, seq: u64) -> bool {
    let text = format!(
        "event {seq} is damaged in the journal and not shown; `linkspan doctor` says what else is"
    );
    let data = json!({ "level": "error", "code": "damaged", "text": text });
    event["seq"] == seq
        && event["type"] == "notice.raised"
        && event["why"] == "damaged"
        && event["data"] == data
}

#[test]
fn a_damaged_event_is_reported_by_every_reader_and_repaired() {
    let folder = Folder::new("damaged");
    let served = Served::start(&folder);
    let id = play(&served);
    let whole = served.events(&id);
    settle(served, &folder);
    assert_eq!(diagnosis(&folder).0, Some(0));
    // One of the events says that it has another number.
    flip_behind(&folder, r#"{"v":1,"seq":"#);
    let (code, findings) = diagnosis(&folder);
    assert_eq!(code, Some(1), "{findings:?}");
    let damaged = findings.iter().find(|it| it.0 == "problem").unwrap();
    let seq: u64 = damaged.1.split(' ').nth(1).unwrap().parse().unwrap();
    assert_eq!(
        damaged.1,
        format!("event {seq} of session `{id}` is damaged")
    );

    let served = Served::start(&folder);
    let events = served.events(&id);
    let altered = |events: &[Value]| {
        let pairs = whole.iter().zip(events);
        let others = pairs.filter(|(was, is)| serde_json::from_str::<Value>(was).unwrap() != **is);
        let others: Vec<Value> = others.map(|it| it.1.clone()).collect();
        assert_eq!((events.len(), others.len()), (whole.len(), 1));
        assert!(is_notice(&others[0], seq), "{others:?}");
    };
    let parsed: Vec<Value> = events
        .iter()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    altered(&parsed);
    let heard = served.socket("linkspan").rest(&id, &json!(0));
    altered(&heard);
    let refused = command(&folder, &["doctor", "--repair"]);
    assert_eq!(refused.code, Some(3), "{}", refused.shown());
    assert!(
        refused
            .stderr
            .contains("another program has the store open"),
        "{}",
        refused.stderr
    );
    served.stop();

    let told = format!("event {seq} is damaged in the journal and not shown");
    let shown = command(&folder, &["show", "--no-pager", &id]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains(&told), "{}", shown.stdout);
    let page = command(&folder, &["replay", &id, "--to", "markdown"]);
    assert!(page.stdout.contains(&told), "{}", page.stdout);

    let repaired = command(&folder, &["doctor", "--repair"]);
    let lines: Vec<&str> = repaired.stdout.lines().collect();
    let n_events = whole.len() - 1;
    assert_eq!(
        (repaired.code, &lines[..2]),
        (
            Some(0),
            &[
                &*format!(
                    "ok       journal  1 sessions with {n_events} events were rescued into a new journal"
                ),
                &*format!("warn     journal  lost: event {seq} of session `{id}` is damaged"),
            ][..]
        )
    );
    assert!(lines[2].starts_with("ok       journal  the old journal is kept as `"));
    let (code, findings) = diagnosis(&folder);
    assert_eq!(code, Some(0), "{findings:?}");
    assert!(
        findings
            .iter()
            .any(|it| it.0 == "warn" && it.1.ends_with("was put aside"))
    );
    let served = Served::start(&folder);
    assert_eq!(served.events(&id), events);
    let more = play(&served);
    check(&served.events(&more));
    let again = command(&folder, &["doctor"]);
    assert_eq!(again.code, Some(0), "{}", again.stdout);
}

#[test]
fn after_flipped_bits_no_server_shows_an_altered_event() {
    let folder = Folder::new("flips");
    let served = Served::start(&folder);
    let ids: Vec<String> = (0..3).map(|_| play(&served)).collect();
    let whole: Vec<Vec<String>> = ids.iter().map(|it| served.events(it)).collect();
    settle(served, &folder);
    let path = folder.path("data/journal.sqlite");
    let bytes = fs::read(&path).unwrap();
    let mut state = 20_260_917_u64;
    let mut below = |limit: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % limit
    };
    // Forty flips, five at a time.
    for n in 0..8 {
        let mut flipped = bytes.clone();
        for _ in 0..5 {
            let bit = below(bytes.len() as u64 * 8);
            flipped[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        fs::write(&path, flipped).unwrap();
        for file in ["-wal", "-shm", "-witness"] {
            fs::remove_file(format!("{path}{file}")).ok();
        }
        // One that cannot be used is refused, in words.
        let looked = command(&folder, &["sessions"]);
        if looked.code == Some(3) {
            assert!(looked.stderr.contains("cannot use"), "{}", looked.stderr);
            continue;
        }
        let served = Served::start(&folder);
        for (id, whole) in ids.iter().zip(&whole) {
            let answer = served.try_request("GET", &format!("/api/sessions/{id}/events"), "");
            // What breaks off is an error, too.
            let Ok(answer) = answer else { continue };
            if answer.status != 200 {
                assert!(
                    [404, 500, 503].contains(&answer.status),
                    "round {n}: {answer:?}"
                );
                continue;
            }
            for (seq, (was, is)) in (1..).zip(whole.iter().zip(answer.body.lines())) {
                let event: Value = serde_json::from_str(is).unwrap();
                assert!(
                    was == is || is_notice(&event, seq),
                    "round {n}, event {seq}: {is}"
                );
            }
        }
    }
}

#[test]
fn a_journal_that_is_deleted_under_a_server_is_noticed_before_the_next_promise() {
    let folder = Folder::new("deleted");
    let served = Served::start(&folder);
    let id = play(&served);
    let events = served.events(&id);
    fs::remove_file(folder.path("data/journal.sqlite")).unwrap();
    let prompt = json!({ "prompt": "x", "engine": "replay:tools" }).to_string();
    let refused = served.request("POST", "/api/runs", &prompt);
    assert_eq!((refused.status, &*refused.code()), (503, "journal_gone"));
    let message = refused.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.ends_with("was deleted or replaced while it was in use"),
        "{message}"
    );
    let health = served.request("GET", "/healthz", "");
    assert_eq!(
        (health.status, &*health.body),
        (
            503,
            "the journal was deleted or replaced; start the server again\n"
        )
    );
    let metrics = served.body("GET", "/api/metrics", "");
    assert!(metrics.contains("linkspan_store_trouble 1\n"), "{metrics}");
    assert_eq!(served.events(&id), events, "what is there can be read");
    served.end(Signal::KILL);
    let (code, findings) = diagnosis(&folder);
    let problem = "the journal is not there, and its witness is: it was deleted or moved away";
    assert_eq!(
        (code, findings),
        (Some(1), vec![("problem".to_owned(), problem.to_owned())])
    );
    // Whoever begins a new one is told that there was more.
    let args = ["run", "--engine", "replay:tools", "--speed", "0", "hello"];
    let begun = command(&folder, &args);
    assert_eq!(begun.code, Some(0), "{}", begun.stderr);
    let gone =
        "linkspan: the journal is missing; it held at least 1 sessions, and a new one was begun\n";
    assert!(begun.stderr.contains(gone), "{}", begun.stderr);
}

#[test]
fn a_journal_that_lost_its_newest_changes_reports_it_at_the_next_start() {
    let folder = Folder::new("lost");
    let served = Served::start(&folder);
    let ids: Vec<String> = (0..3).map(|_| play(&served)).collect();
    let heads: Vec<usize> = ids.iter().map(|it| served.events(it).len()).collect();
    served.end(Signal::KILL);
    let wal = folder.path("data/journal.sqlite-wal");
    let mut bytes = fs::read(&wal).unwrap();
    // In the first page of the log: SQLite drops all of it.
    bytes[100] ^= 1;
    fs::write(&wal, bytes).unwrap();
    let looked = command(&folder, &["sessions"]);
    assert_eq!(looked.code, Some(0), "{}", looked.shown());
    let first = looked.stderr.lines().next().unwrap();
    let n_events: usize = heads.iter().sum();
    assert!(
        first.starts_with(&format!(
            "linkspan: the journal lost its newest changes: {n_events} events and "
        )),
        "{first}"
    );
    for (id, head) in ids.iter().zip(&heads) {
        let line = format!("  {id}: all of its {head} events");
        assert!(looked.stderr.contains(&line), "{}", looked.stderr);
    }
    let copied = "linkspan: what was found was copied to `";
    assert!(looked.stderr.contains(copied), "{}", looked.stderr);
    let (code, findings) = diagnosis(&folder);
    assert_eq!(code, Some(0), "{findings:?}");
    assert!(
        findings
            .iter()
            .any(|it| it.0 == "warn" && it.1.ends_with("was put aside"))
    );
    let again = command(&folder, &["sessions"]).stderr;
    assert!(!again.contains("lost"), "it is told once: {again}");
}

#[test]
fn the_doctor_looks_at_all_that_linkspan_stands_on() {
    let folder = Folder::new("doctor");
    for part in ["bin", "config/linkspan", "home"] {
        fs::create_dir_all(folder.path(part)).unwrap();
    }
    let abouts = |ran: &Ran| -> Vec<(String, String)> {
        let lines = ran
            .stdout
            .lines()
            .map(|it| serde_json::from_str::<Value>(it).unwrap());
        let text = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
        lines
            .map(|it| (text(&it, "about"), text(&it, "level")))
            .collect()
    };
    let first = command(&folder, &["doctor", "--json"]);
    assert_eq!(first.code, Some(0), "{}", first.shown());
    let level = |ran: &Ran, about: &str| {
        let all = abouts(ran).into_iter().filter(|it| it.0 == about);
        all.map(|it| it.1).collect::<Vec<_>>()
    };
    for about in ["config", "data", "journal", "tokens", "locks", "claude"] {
        assert_eq!(level(&first, about), ["ok"], "{about}");
    }
    assert_eq!(level(&first, "engines"), ["warn"]);
    assert!(
        !fs::exists(folder.path("data")).unwrap(),
        "looking makes nothing"
    );

    Served::start(&folder).stop();
    let claude = folder.file("bin/claude", "#!/bin/sh\necho '2.1.0 (Claude Code)'\n");
    fs::set_permissions(&claude, fs::Permissions::from_mode(0o755)).unwrap();
    let config = folder.file(
        "config/linkspan/config.toml",
        "defualt_engine = \"claude\"\n",
    );
    let mode = |path: &str, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&folder.path("data/token"), 0o644);
    mode(&folder.path("data"), 0o777);
    let bad = command(&folder, &["doctor", "--json"]);
    assert_eq!(bad.code, Some(1), "{}", bad.shown());
    assert_eq!(level(&bad, "config"), ["problem"]);
    assert_eq!(level(&bad, "data")[0], "problem");
    assert_eq!(level(&bad, "tokens"), ["problem"]);
    assert!(bad.stdout.contains("defualt_engine"), "{}", bad.stdout);

    fs::write(&config, "default_engine = \"claude\"\n").unwrap();
    mode(&folder.path("data/token"), 0o600);
    mode(&folder.path("data"), 0o700);
    mode(&config, 0o666);
    let open = command(&folder, &["doctor", "--json"]);
    assert_eq!(level(&open, "config"), ["problem"]);
    mode(&config, 0o600);
    let good = command(&folder, &["doctor"]);
    assert_eq!(good.code, Some(0), "{}", good.shown());
    let claude_line = good
        .stdout
        .lines()
        .find(|it| it.contains("claude  "))
        .unwrap();
    assert!(
        claude_line.contains("2.1.0") && claude_line.contains("without a login or a key"),
        "{claude_line}"
    );
    let nothing = command(&folder, &["doctor", "--repair"]);
    assert_eq!(nothing.code, Some(0), "{}", nothing.shown());
    assert!(
        nothing.stdout.contains("is whole; nothing was changed"),
        "{}",
        nothing.stdout
    );
}
