//! What a new user of `run`, `serve`, `token` and `sessions` is told when something is not right.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::program::{Folder, linkspan, ran, run};
use crate::served::{Served, serve};
use crate::terminal::terminal;

/// What a command says; the folder of the test is called `DIR`.
fn check(folder: &Folder, args: &[&str], expect: Expect) {
    let dir = folder.path("");
    let args: Vec<String> = args.iter().map(|it| it.replace("DIR/", &dir)).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = linkspan(&args);
    command
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .env("XDG_STATE_HOME", folder.path("state"))
        .env_remove("LINKSPAN_TOKEN");
    let said = ran(command.output().unwrap()).shown();
    expect.assert_eq(&said.replace(&dir, "DIR/"));
}

#[test]
fn a_server_that_cannot_start_reports_cause_and_remedy() {
    let folder = Folder::new("words-serve");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = run(
        &[
            "serve",
            "--listen",
            &address,
            "--data-dir",
            &folder.path("data"),
        ],
        b"",
    );
    expect![[r#"
        linkspan: cannot listen on `ADDRESS`: Address already in use

        hint: another program listens there; `--listen 127.0.0.1:0` picks a free port
        exit 3
    "#]]
    .assert_eq(&ran.shown().replace(&address, "ADDRESS"));
    let serve = |more: &[&'static str]| [&["serve", "--listen", "127.0.0.1:0"], more].concat();
    folder.file("file", "");
    let nowhere = ["--data-dir", "DIR/file/data"];
    check(
        &folder,
        &serve(&nowhere),
        expect![[r#"
        linkspan: cannot use the data directory `DIR/file/data`: Not a directory

        hint: name a directory you may write to with `--data-dir`
        exit 3
    "#]],
    );
    let data = ["--data-dir", "DIR/data"];
    let with = |more: &[&'static str]| serve(&[&data[..], more].concat());
    folder.file("c.toml", "[serve]\nroot = ['/']\n");
    check(
        &folder,
        &with(&["--config", "DIR/c.toml"]),
        expect![[r#"
            linkspan: DIR/c.toml:2: there is no key `serve.root`

            hint: did you mean `roots`? known here: roots, allow_origins, permissions, log_format, log_level
            exit 2
        "#]],
    );
    folder.file("d.toml", "[serve]\nroots = ['src']\n");
    check(
        &folder,
        &with(&["--config", "DIR/d.toml"]),
        expect![[r#"
            linkspan: `serve.roots` names `src`, wherever that is

            hint: begin it with `/` or `~/`
            exit 2
        "#]],
    );
    check(
        &folder,
        &with(&["--root", "DIR/none"]),
        expect![[r#"
        linkspan: agents cannot work in `DIR/none`: No such file or directory

        hint: name a directory that exists with `--root` or in `serve.roots`
        exit 2
    "#]],
    );
    check(
        &folder,
        &with(&["--keep-bytes", "lots"]),
        expect![[r#"
        linkspan: `--keep-bytes` is `lots`, expected a number of bytes, or a text such as "500 MB" or "2 GiB"
        exit 2
    "#]],
    );
    check(
        &folder,
        &with(&["--origin", "example.com"]),
        expect![[r#"
            linkspan: `example.com` is not the address of a page

            hint: write it as browsers do, such as `https://agents.example.com`
            exit 2
        "#]],
    );
    let token = folder.file("token", "secret\n");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    check(
        &folder,
        &with(&["--token-file", "DIR/token"]),
        expect![[r#"
            linkspan: others can read the token file `DIR/token`

            hint: `chmod 600` it, and make a new token if it may have been read
            exit 3
        "#]],
    );
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&token, "\n").unwrap();
    check(
        &folder,
        &with(&["--token-file", "DIR/token"]),
        expect![[r#"
            linkspan: the token file `DIR/token` is empty

            hint: remove it, and a new token is made
            exit 3
        "#]],
    );
    fs::create_dir(folder.path("folder")).unwrap();
    fs::set_permissions(folder.path("folder"), fs::Permissions::from_mode(0o700)).unwrap();
    check(
        &folder,
        &with(&["--token-file", "DIR/folder"]),
        expect![[r#"
            linkspan: cannot read the token file `DIR/folder`: Is a directory

            hint: name a file you may read, or none, and one is made
            exit 3
        "#]],
    );
    check(
        &folder,
        &with(&["--token-file", "DIR/file/token"]),
        expect![[r#"
            linkspan: cannot read the token file `DIR/file/token`: Not a directory

            hint: name a file you may read, or none, and one is made
            exit 3
        "#]],
    );
    let tls = |cert, key| with(&["--tls-cert", cert, "--tls-key", key]);
    check(
        &folder,
        &tls("DIR/none.pem", "DIR/none.pem"),
        expect![[r#"
            linkspan: cannot use `DIR/none.pem` to encrypt: I/O error: No such file or directory

            hint: `--tls-cert` is a file of certificates in PEM, `--tls-key` the private key of the first
            exit 3
        "#]],
    );
    check(
        &folder,
        &tls("DIR/file", "DIR/file"),
        expect![[r#"
        linkspan: cannot use `DIR/file` to encrypt: no items found

        hint: `--tls-cert` is a file of certificates in PEM, `--tls-key` the private key of the first
        exit 3
    "#]],
    );
    check(
        &folder,
        &with(&["--tls-cert", "DIR/file"]),
        expect![[r#"
            linkspan: the following required arguments were not provided: --tls-key <FILE>

            hint: usage: linkspan serve --tls-cert <FILE> --tls-key <FILE> --listen <ADDRESS> --data-dir <DIR>
            exit 2
        "#]],
    );
    fs::write(folder.path("data/tokens.json"), "{").unwrap();
    check(
        &folder,
        &with(&[]),
        expect![[r#"
        linkspan: the token file `DIR/data/tokens.json` is not what linkspan writes: invalid type: map, expected a sequence at line 1 column 0

        hint: move it away; the tokens in it are then revoked
        exit 3
    "#]],
    );
    fs::remove_file(folder.path("data/tokens.json")).unwrap();
    fs::write(
        folder.path("data/journal.sqlite"),
        "not a database, and long enough to be one",
    )
    .unwrap();
    check(
        &folder,
        &with(&[]),
        expect![[r#"
        linkspan: cannot use `DIR/data/journal.sqlite`: the store is damaged (file is not a database)

        hint: `linkspan doctor` says what is damaged, and `linkspan doctor --repair` rescues what is whole
        exit 3
    "#]],
    );
}

#[test]
fn a_second_server_on_a_directory_learns_of_the_first() {
    let folder = Folder::new("words-second");
    let token = || fs::read_to_string(folder.path("data/token")).unwrap();
    let first = Served::spawn(&mut serve(&folder), token);
    let address = first.address.as_str();
    let ran = run(
        &[
            "serve",
            "--listen",
            address,
            "--data-dir",
            &folder.path("data"),
        ],
        b"",
    );
    expect![[r#"
        linkspan: cannot listen on `ADDRESS`: Address already in use

        hint: another server of this data directory listens there; `linkspan token` prints its address, `--listen 127.0.0.1:0` starts one beside it
        exit 3
    "#]]
    .assert_eq(&ran.shown().replace(address, "ADDRESS"));
    let second = Served::spawn(&mut serve(&folder), token);
    // Each is reached where it says, and `linkspan token` knows both, the oldest first.
    assert_ne!(first.address, second.address);
    for served in [&first, &second] {
        assert_eq!(served.request("GET", "/api/sessions", "").status, 200);
    }
    let pages = |served: &[&Served]| -> String {
        let pages = served.iter();
        let page = |it: &&Served| format!("http://{}/#token={}\n", it.address, it.token);
        pages.map(page).collect()
    };
    let data = ["token", "--data-dir", &folder.path("data")];
    assert_eq!(run(&data, b"").stdout, pages(&[&first, &second]));
    let (first_pid, first_address) = (first.pid().as_raw_nonzero(), first.address.clone());
    let said = second.stop();
    assert!(
        said.starts_with(&format!(
            "linkspan: process {first_pid} at {first_address} serves the same data directory; both show the same sessions\n"
        )),
        "{said}"
    );
    // The first one is found as before.
    assert_eq!(run(&data, b"").stdout, pages(&[&first]));
    first.stop();
    let left = fs::read_dir(folder.path("data/servers")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn a_token_is_printed_to_terminals_alone() {
    let folder = Folder::new("words-no-terminal");
    let token = || fs::read_to_string(folder.path("data/token")).unwrap();
    let served = Served::spawn(&mut serve(&folder), token);
    let token = served.token.clone();
    let said = served.stop();
    let data = folder.path("data");
    let expected = format!(
        "linkspan: `linkspan token --data-dir {data}` prints the address of the page with its token\n"
    );
    assert!(said.starts_with(&expected), "{said}");
    assert!(!said.contains(&token), "{said}");
}

#[test]
fn a_terminal_is_shown_the_page_with_its_token() {
    let folder = Folder::new("words-terminal");
    let (ours, theirs) = terminal();
    let mut child = serve(&folder).stderr(theirs).spawn().unwrap();
    let mut lines = BufReader::new(ours).lines();
    let mut line = || lines.next().unwrap().unwrap().trim_end().to_owned();
    let url = line().strip_prefix("listening on ").unwrap().to_owned();
    let token = fs::read_to_string(folder.path("data/token")).unwrap();
    assert_eq!(line(), format!("open {url}/#token={}", token.trim()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_page_behind_a_proxy_has_its_public_address() {
    let folder = Folder::new("words-proxy");
    let token = || fs::read_to_string(folder.path("data/token")).unwrap();
    let flags = [
        "--behind-proxy",
        "--origin",
        "https://agents.localhost:48443",
    ];
    let served = Served::spawn(serve(&folder).args(flags), token);
    let page = format!("https://agents.localhost:48443/#token={}\n", served.token);
    let ran = run(&["token", "--data-dir", &folder.path("data")], b"");
    assert_eq!(ran.stdout, page);
    served.stop();
}

#[test]
fn a_token_is_made_listed_and_revoked() {
    let folder = Folder::new("words-token");
    let data = ["--data-dir", "DIR/data"];
    let token = |more: &[&'static str]| [&["token"], more, &data[..]].concat();
    let made = run(
        &[
            "token",
            "--role",
            "watch",
            "--json",
            "--data-dir",
            &folder.path("data"),
        ],
        b"",
    );
    let notice = "linkspan: no server is running on this data directory; `linkspan serve` starts one, and \
                  then this address opens its page\n";
    assert_eq!(made.stderr, notice);
    let made: Value = serde_json::from_str(&made.stdout).unwrap();
    assert_eq!(made["running"], false);
    let id = made["id"].as_str().unwrap();
    check(
        &folder,
        &token(&["--revoke", "12345678"]),
        expect![[r#"
        linkspan: no token is called `12345678`

        hint: `linkspan token` lists them
        exit 2
    "#]],
    );
    let listed = run(&["token", "--data-dir", &folder.path("data")], b"").stdout;
    assert!(listed.lines().last().unwrap().starts_with(id), "{listed}");
    let revoked = run(
        &["token", "--revoke", id, "--data-dir", &folder.path("data")],
        b"",
    );
    let expected = format!("linkspan: revoked `{id}`\nexit 0\n");
    assert_eq!(revoked.shown(), expected);
    let listed = run(&["token", "--data-dir", &folder.path("data")], b"").stdout;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    check(
        &folder,
        &token(&["--role", "king"]),
        expect![[r#"
        linkspan: invalid value 'king' for '--role <ROLE>'

        hint: possible values: watch, prompt, approve, admin
        exit 2
    "#]],
    );
}

#[test]
fn sessions_are_found_by_text_and_id_prefix() {
    let folder = Folder::new("words-sessions");
    let data = folder.path("data");
    let at = ["--data-dir", "DIR/data"];
    let check = |args: &[&str], expect| check(&folder, &[args, &at].concat(), expect);
    check(
        &["sessions"],
        expect![[r#"
        linkspan: there are no sessions yet; `linkspan run` and `linkspan serve` start them
        exit 0
    "#]],
    );
    check(
        &["show", "01991a"],
        expect![[r#"
            linkspan: neither a file nor a session is called `01991a`

            hint: `linkspan sessions` lists sessions, and the last 6 characters of an id will do; check the path if it is a file
            exit 2
        "#]],
    );
    check(
        &["replay", "01991a", "--to", "text"],
        expect![[r#"
        linkspan: no session matches `01991a`

        hint: `linkspan sessions` lists them; the last 6 characters of an id will do
        exit 2
    "#]],
    );
    for prompt in ["mend the parser", "write a poem"] {
        let args = [
            "run",
            "--engine",
            "replay:tools",
            "--speed",
            "0",
            "--data-dir",
            &data,
        ];
        let ran = run(&[&args[..], &[prompt]].concat(), b"");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let list = |more: &[&str]| {
        let args = [&["sessions", "--json", "--data-dir", &data], more].concat();
        let lines = run(&args, b"").stdout;
        let lines = lines.lines().map(|it| serde_json::from_str(it).unwrap());
        lines.collect::<Vec<Value>>()
    };
    let titles = |more: &[&str]| {
        let listed = list(more).into_iter();
        let titles = listed.map(|it| it["title"].as_str().unwrap().to_owned());
        titles.collect::<Vec<_>>()
    };
    assert_eq!(titles(&[]), ["write a poem", "mend the parser"]);
    assert_eq!(titles(&["Parser"]), ["mend the parser"]);
    assert_eq!(titles(&["--text", "poem"]), ["write a poem"]);
    assert_eq!(titles(&["-n", "1"]), ["write a poem"]);
    assert_eq!(
        titles(&["--engine", "replay:tools", "--state", "idle"]).len(),
        2
    );
    assert_eq!(titles(&["--engine", "claude"]), [""; 0]);
    check(
        &["sessions", "elephant"],
        expect![[r#"
        linkspan: no session matches; `linkspan sessions` lists all of them
        exit 0
    "#]],
    );
    for limit in ["0", "x"] {
        let refused = run(&["sessions", "-n", limit], b"");
        expect![[r#"
            linkspan: invalid value 'N' for '--limit <N>': it is a whole number from 1 on

            hint: see `linkspan sessions --help`
            exit 2
        "#]]
        .assert_eq(&refused.shown().replace(&format!("'{limit}'"), "'N'"));
    }
    let all = list(&[]);
    let ids: Vec<&str> = all.iter().map(|it| it["id"].as_str().unwrap()).collect();
    let common = ids[0]
        .bytes()
        .zip(ids[1].bytes())
        .take_while(|it| it.0 == it.1);
    let common = common.count();
    let own = &ids[0][..=common.max(6)];
    let shown = run(&["show", own, "--data-dir", &data], b"");
    assert!(shown.stdout.contains("write a poem"), "{}", shown.shown());
    let whole = run(
        &["replay", ids[0], "--to", "text", "--data-dir", &data],
        b"",
    );
    let short = run(&["replay", own, "--to", "text", "--data-dir", &data], b"");
    assert_eq!(short, whole);
    let end = &ids[0][ids[0].len() - 6..];
    let by_end = run(&["replay", end, "--to", "text", "--data-dir", &data], b"");
    assert_eq!(by_end, whole);
    // Ids begin with the time, so those of one hour begin alike.
    let ambiguous = run(&["show", &ids[0][..6], "--data-dir", &data], b"").shown();
    let ambiguous = ambiguous.replace(ids[0], "NEWER").replace(ids[1], "OLDER");
    expect![[r#"
        linkspan: the ids of 2 sessions begin or end with `PREFIX`

        hint: give the end of the one that is meant: NEWER, OLDER
        exit 2
    "#]]
    .assert_eq(&ambiguous.replace(&ids[0][..6], "PREFIX"));
    let other = run(
        &[
            "run",
            "--engine",
            "claude",
            "--resume",
            own,
            "--data-dir",
            &data,
            "go on",
        ],
        b"",
    );
    expect![[r#"
        linkspan: session `PREFIX` is one of replay:tools, not of claude

        hint: add `--engine replay:tools`
        exit 2
    "#]]
    .assert_eq(&other.shown().replace(own, "PREFIX"));
    let few = run(&["show", &ids[0][..5], "--data-dir", &data], b"");
    assert!(
        few.stderr.contains("neither a file nor a session"),
        "{few:?}"
    );
    check(
        &["show", "no-such-session"],
        expect![[r#"
            linkspan: neither a file nor a session is called `no-such-session`

            hint: `linkspan sessions` lists sessions, and the last 6 characters of an id will do; check the path if it is a file
            exit 2
        "#]],
    );
    check(
        &["show", "missing.jsonl"],
        expect![[r#"
        linkspan: cannot read `missing.jsonl`: No such file or directory

        hint: check the path; `-` reads stdin
        exit 3
    "#]],
    );
}

#[test]
fn a_misspelt_engine_or_recording_is_guessed() {
    let folder = Folder::new("words-engines");
    let at = ["--data-dir", "DIR/data", "hello"];
    let check = |engine: &str, expect| {
        check(
            &folder,
            &[&["run", "--engine", engine], &at[..]].concat(),
            expect,
        );
    };
    check(
        "claud",
        expect![[r#"
        linkspan: there is no engine `claud`

        hint: did you mean `claude`? engines: claude, codex, opencode, gemini, openhands, acp:COMMAND, responses:NAME, replay:FILE
        exit 2
    "#]],
    );
    check(
        "replay:tool",
        expect![[r#"
        linkspan: there is no recording `tool`

        hint: did you mean `replay:tools`? recordings: replay:tools, replay:approval, replay:subagents, replay:failure, or `replay:FILE` with the path of one
        exit 3
    "#]],
    );
    check(
        "replay:foo",
        expect![[r#"
        linkspan: there is no recording `foo`

        hint: recordings: replay:tools, replay:approval, replay:subagents, replay:failure, or `replay:FILE` with the path of one
        exit 3
    "#]],
    );
}

#[test]
fn an_option_that_an_engine_does_not_have_is_refused_at_the_start() {
    let folder = Folder::new("words-options");
    check(
        &folder,
        &["acp", "--engine", "gemini", "--effort", "high"],
        expect![[r#"
            linkspan: engine `gemini` cannot choose the reasoning effort

            hint: leave it out, or use an engine that has it: claude, codex, openhands, responses:NAME
            exit 2
        "#]],
    );
    check(
        &folder,
        &["acp", "--engine", "codex", "--verbosity", "loud"],
        expect![[r#"
            linkspan: the verbosity is none of low, medium and high: `loud`
            exit 2
        "#]],
    );
    check(
        &folder,
        &["run", "--engine", "claude", "--verbosity", "low", "hello"],
        expect![[r#"
            linkspan: engine `claude` cannot choose the verbosity

            hint: leave it out, or use an engine that has it: codex
            exit 2
        "#]],
    );
    check(
        &folder,
        &["run", "--engine", "replay:tools", "--effort", "low"],
        expect![[r#"
            linkspan: engine `replay` cannot choose the reasoning effort

            hint: leave it out, or use an engine that has it: claude, codex, openhands, responses:NAME
            exit 2
        "#]],
    );
}
