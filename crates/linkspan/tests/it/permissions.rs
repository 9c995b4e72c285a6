//! What an agent may do, and which key it sees: an agent that notes its arguments and its key, started by
//! `run` and by a server.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::program::{Folder, linkspan, machine, ran};
use crate::served::{PATIENCE, Served, serve};

/// Notes how it was started, and answers every prompt, on stdin or not.
const CLAUDE: &str = r#"
PATH=/usr/bin:/bin
echo "key=${ANTHROPIC_API_KEY-none} $*" >> "$HOME/started"
tell() {
  echo '{"type":"system","subtype":"init","session_id":"s-'$$'","model":"m","cwd":"/w"}'
  echo '{"type":"result","subtype":"success","is_error":false,"result":"Hello.","session_id":"s-'$$'"}'
}
case $* in *--input-format*) ;; *) tell; exit;; esac
while read -r line; do
  case $line in
    *'"initialize"'*) echo '{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{}}}';;
    *'"user"'*) tell;;
  esac
done
"#;

fn house(name: &str, config: &str) -> Folder {
    let folder = machine(name, &[("claude", CLAUDE)], config);
    fs::create_dir_all(folder.path("work")).unwrap();
    folder
}

fn command(folder: &Folder, args: &[&str]) -> Command {
    let mut command = linkspan(&["run", "--engine", "claude", "--to", "takopi"]);
    command
        .args(args)
        .env_clear()
        .env("PATH", folder.path("bin"))
        .env("HOME", folder.path(""))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .current_dir(folder.path("work"))
        .stdin(Stdio::null());
    command
}

/// How the agent was started since the last look: its key, and the flags that are about permissions.
fn started(folder: &Folder) -> Vec<String> {
    let text = fs::read_to_string(folder.path("started")).unwrap_or_default();
    fs::remove_file(folder.path("started")).ok();
    let is_about = |it: &str| {
        let flags = ["--permission-mode", "--dangerously", "--allowed", "--dis"];
        it.starts_with("key=") || flags.iter().any(|flag| it.starts_with(flag))
    };
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let mut shown = Vec::new();
        for (at, word) in words.iter().enumerate() {
            if is_about(word) || at > 0 && words[at - 1] == "--permission-mode" {
                shown.push(*word);
            }
        }
        shown.join(" ")
    };
    text.lines().map(line).collect()
}

/// What a run says on stderr, and how it started the agent.
fn check(folder: &Folder, args: &[&str], expect: Expect) {
    let args = [args, &["hello"]].concat();
    let ran = ran(command(folder, &args).output().unwrap());
    let said = format!("{}{}\n", ran.stderr, started(folder).join("\n"));
    expect.assert_eq(&said);
}

#[test]
fn an_unattended_run_prints_its_permissions() {
    let folder = house("permissions-listed", "");
    check(
        &folder,
        &[],
        expect![[r#"
            linkspan: runs without asking: Bash, Read, Edit, Write; everything else is denied (`--permissions listed`)
            key=none --permission-mode dontAsk --allowedTools=Bash,Read,Edit,Write
        "#]],
    );
    check(
        &folder,
        &["--allow", "Read", "--deny", "Edit"],
        expect![[r#"
            linkspan: runs without asking: Read; everything else is denied (`--permissions listed`)
            key=none --permission-mode dontAsk --allowedTools=Read --disallowedTools=Edit
        "#]],
    );
    let folder = house(
        "permissions-configured",
        "[engines.claude]\nallowed_tools = []",
    );
    check(
        &folder,
        &[],
        expect![[r#"
            linkspan: nothing runs without asking, and whatever the agent asks for is denied (`--permissions listed`, and the list is empty)
            key=none --permission-mode dontAsk
        "#]],
    );
}

#[test]
fn only_the_listed_mode_has_a_default_list() {
    let folder = house("permissions-modes", "");
    for (mode, expect) in [
        ("plan", expect!["key=none --permission-mode plan\n"]),
        ("deny", expect!["key=none --permission-mode dontAsk\n"]),
        ("ask", expect!["key=none --permission-mode dontAsk\n"]),
        (
            "accept-edits",
            expect!["key=none --permission-mode acceptEdits\n"],
        ),
        (
            "allow",
            expect!["key=none --dangerously-skip-permissions\n"],
        ),
    ] {
        check(&folder, &["--permissions", mode], expect);
    }
    let list = ["--permissions", "deny", "--allow", "Read"];
    check(
        &folder,
        &list,
        expect!["key=none --permission-mode dontAsk --allowedTools=Read\n"],
    );
    let wanted = ["run", "--permissions", "yolo", "hello"];
    let refused = ran(linkspan(&wanted).stdin(Stdio::null()).output().unwrap());
    assert_eq!(refused.code, Some(2));
    let names = "possible values: plan, deny, ask, accept-edits, listed, allow";
    assert!(refused.stderr.contains(names), "{}", refused.stderr);
}

/// The key that the agent saw, and what was said of it, in a run in `allow`, which says nothing else.
fn key_seen(folder: &Folder, env: &[(&str, &str)]) -> String {
    let mut command = command(folder, &["--permissions", "allow", "hello"]);
    let ran = ran(command.envs(env.iter().copied()).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let key = started(folder)[0].split(' ').next().unwrap().to_owned();
    format!("{}{key}\n", ran.stderr)
}

fn check_key(folder: &Folder, env: &[(&str, &str)], expect: Expect) {
    expect.assert_eq(&key_seen(folder, env));
}

#[test]
fn a_key_is_used_where_there_is_no_login() {
    let key = ("ANTHROPIC_API_KEY", "k");
    let folder = house("permissions-key", "");
    check_key(&folder, &[], expect!["key=none\n"]);
    check_key(
        &folder,
        &[key],
        expect![[r#"
            linkspan: Claude Code is not logged in, so it uses ANTHROPIC_API_KEY; `engines.claude.use_api_billing` in the config changes that
            key=k
        "#]],
    );
    let withheld = "linkspan: Claude Code uses its own login and not ANTHROPIC_API_KEY; \
                    `engines.claude.use_api_billing = true` in the config changes that\nkey=none\n";
    assert_eq!(
        key_seen(&folder, &[key, ("CLAUDE_CODE_OAUTH_TOKEN", "t")]),
        withheld
    );
    fs::create_dir(folder.path(".claude")).unwrap();
    folder.file(".claude/.credentials.json", "{}");
    assert_eq!(key_seen(&folder, &[key]), withheld);
    let config = "config/linkspan/config.toml";
    folder.file(config, "[engines.claude]\nuse_api_billing = true");
    check_key(&folder, &[key], expect!["key=k\n"]);
    fs::remove_dir_all(folder.path(".claude")).unwrap();
    folder.file(config, "[engines.claude]\nuse_api_billing = false");
    check_key(&folder, &[key], expect!["key=none\n"]);
    folder.file(config, "[engines.claude]\nuse_api_billing = 'auto'");
    check_key(
        &folder,
        &[key],
        expect![[r#"
            linkspan: Claude Code is not logged in, so it uses ANTHROPIC_API_KEY; `engines.claude.use_api_billing` in the config changes that
            key=k
        "#]],
    );
}

#[test]
fn a_config_on_a_pipe_is_read_once_and_holds() {
    let folder = house("permissions-pipe", "");
    let config = folder.file("given.toml", "[engines.claude]\nallowed_tools = ['Read']\n");
    let mut command = command(&folder, &["--config", "/dev/stdin", "hello"]);
    let ran = ran(command
        .stdin(fs::File::open(config).unwrap())
        .output()
        .unwrap());
    expect![[r#"
        linkspan: runs without asking: Read; everything else is denied (`--permissions listed`)
    "#]]
    .assert_eq(&ran.stderr);
    assert_eq!(
        started(&folder),
        ["key=none --permission-mode dontAsk --allowedTools=Read"]
    );
}

/// Every event of a session of the server, once its run has ended.
fn events(served: &Served, prompt: &Value) -> Vec<Value> {
    let session = served.submit(prompt);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let events = served.events(&session);
        if events.iter().any(|it| it.contains("run.ended")) {
            let read = |it: &String| serde_json::from_str(it).unwrap();
            return events.iter().map(read).collect();
        }
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
}

#[test]
fn a_server_asks_by_default_and_notes_which_key_is_used() {
    let folder = house("permissions-served", "");
    let mut command = serve(&folder);
    command
        .env("HOME", folder.path(""))
        .env("ANTHROPIC_API_KEY", "k")
        .env_remove("CLAUDE_CODE_OAUTH_TOKEN")
        .env_remove("ANTHROPIC_AUTH_TOKEN")
        .env_remove("CLAUDE_CONFIG_DIR")
        .current_dir(folder.path("work"));
    let served = Served::from(&mut command, &folder);
    let told = events(&served, &json!({"prompt": "hello", "engine": "claude"}));
    let notices = told.iter().map(|it| &it["data"]);
    let notices: Vec<&Value> = notices.filter(|it| it["code"] == "api_key").collect();
    let text = "Claude Code is not logged in, so it uses ANTHROPIC_API_KEY; `engines.claude.use_api_billing` in the config changes that";
    let notice = json!({"level": "info", "code": "api_key", "text": text});
    assert_eq!(notices, [&notice]);
    let modes = [
        ("plan", "--permission-mode plan"),
        ("deny", "--permission-mode dontAsk"),
        (
            "listed",
            "--permission-mode dontAsk --allowedTools=Bash,Read,Edit,Write",
        ),
        ("allow", "--dangerously-skip-permissions"),
    ];
    let mut expected = vec!["key=k --permission-mode manual".to_owned()];
    for (mode, flags) in modes {
        events(
            &served,
            &json!({"prompt": "hello", "engine": "claude", "permissions": mode}),
        );
        expected.push(format!("key=k {flags}"));
    }
    // The list of a request is the list, an empty one too.
    for (list, flags) in [(json!(["Read"]), " --allowedTools=Read"), (json!([]), "")] {
        let prompt =
            json!({"prompt": "hello", "engine": "claude", "permissions": "listed", "allow": list});
        events(&served, &prompt);
        expected.push(format!("key=k --permission-mode dontAsk{flags}"));
    }
    assert_eq!(started(&folder), expected);
}
