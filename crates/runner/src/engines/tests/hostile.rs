//! Values that try to be something else: none becomes a flag, none is cut, none is lost.

use super::*;

/// What must never reach an agent as an id, and why.
const REFUSED: &[(&str, &str)] = &[
    ("", "is empty"),
    ("-", "begins with `-`"),
    ("--", "begins with `-`"),
    ("-r", "begins with `-`"),
    ("--resume", "begins with `-`"),
    ("--resume=x", "begins with `-`"),
    ("--last", "begins with `-`"),
    ("--continue", "begins with `-`"),
    ("--fork", "begins with `-`"),
    ("--fork-session", "begins with `-`"),
    ("--help", "begins with `-`"),
    ("-h", "begins with `-`"),
    ("--version", "begins with `-`"),
    ("-p", "begins with `-`"),
    ("-p x", "begins with `-`"),
    ("--yolo", "begins with `-`"),
    ("--auto", "begins with `-`"),
    ("--dangerously-skip-permissions", "begins with `-`"),
    (
        "--dangerously-bypass-approvals-and-sandbox",
        "begins with `-`",
    ),
    ("--permission-mode=bypassPermissions", "begins with `-`"),
    ("--mcp-config={\"mcpServers\":{}}", "begins with `-`"),
    ("--settings=/tmp/x", "begins with `-`"),
    ("-c", "begins with `-`"),
    ("-csandbox_mode=danger-full-access", "begins with `-`"),
    ("-1", "begins with `-`"),
    ("-\u{e9}", "begins with `-`"),
    ("-0199a213-81c0-7800-8aa1-bbab2a035a53", "begins with `-`"),
    ("\0", "holds a control character"),
    ("a\0b", "holds a control character"),
    (
        "0199a213-81c0-7800-8aa1-bbab2a035a53\0",
        "holds a control character",
    ),
    ("a\nb", "holds a control character"),
    ("a\n--help", "holds a control character"),
    ("\n", "holds a control character"),
    ("\n--help", "holds a control character"),
    ("a\r", "holds a control character"),
    ("a\r\nb", "holds a control character"),
    ("a\tb", "holds a control character"),
    ("\ta", "holds a control character"),
    ("a\u{b}b", "holds a control character"),
    ("a\u{c}b", "holds a control character"),
    ("a\u{7}b", "holds a control character"),
    ("a\u{8}b", "holds a control character"),
    ("a\u{1b}b", "holds a control character"),
    ("\u{1b}[2J", "holds a control character"),
    ("\u{1b}]52;c;eA==\u{7}", "holds a control character"),
    ("\u{1b}P0;0|x\u{1b}\\", "holds a control character"),
    ("a\u{7f}", "holds a control character"),
    ("a\u{85}b", "holds a control character"),
    ("a\u{9b}2J", "holds a control character"),
    ("a\u{9d}0;x\u{9c}", "holds a control character"),
    ("a\u{1}", "holds a control character"),
    ("a\u{4}", "holds a control character"),
    ("a\u{1a}", "holds a control character"),
    (" ", "begins or ends with a space"),
    (" a", "begins or ends with a space"),
    ("a ", "begins or ends with a space"),
    (" --help", "begins or ends with a space"),
    ("\u{a0}a", "begins or ends with a space"),
    ("a\u{2003}", "begins or ends with a space"),
    ("\u{2028}a", "begins or ends with a space"),
    ("\u{3000}", "begins or ends with a space"),
];

/// What is odd, but an id like any other: it arrives as it is, as one argument.
const TAKEN: &[&str] = &[
    "a",
    "0",
    "5x",
    "ses_e1dce9ba2ffeOIhllDEg7p8aiJ",
    "0199a213-81c0-7800-8aa1-bbab2a035a53",
    "a-b",
    "a--b",
    "a b",
    "my session title",
    "a=b",
    "=",
    "@file",
    "/etc/passwd",
    "../../x",
    "C:\\x",
    "~",
    "~root",
    "*",
    "?",
    "$HOME",
    "${HOME}",
    "$(id)",
    "`id`",
    "a;id",
    "a|id",
    "a&id",
    "a>b",
    "'",
    "\"",
    "\"quoted\"",
    "'quoted'",
    "\\",
    "a\\",
    "%s%n",
    "{}",
    "[]",
    "!x",
    "#x",
    "é",
    "日本語",
    "🦀",
    "a\u{200b}b",
    "a\u{202e}b",
    "\u{2212}minus",
    "\u{2013}dash",
    "\u{ff0d}wide",
    "null",
    "true",
];

/// The two places where an id goes.
fn ids(id: &str) -> [Resume; 2] {
    [Resume::Session(id.to_owned()), Resume::Fork(id.to_owned())]
}

#[test]
fn ids_that_could_be_read_as_something_else_are_refused() {
    let long = "x".repeat(513);
    let long_unicode = "é".repeat(257);
    let too_long = [long.as_str(), &long_unicode].map(|it| (it, "is longer than 512 bytes"));
    for (id, why) in REFUSED.iter().chain(&too_long) {
        for name in [
            "claude",
            "codex",
            "opencode",
            "gemini",
            "openhands",
            "acp:x",
        ] {
            for resume in ids(id) {
                // Gemini refuses every fork, and says so.
                if name == "gemini" && matches!(resume, Resume::Fork(_)) {
                    continue;
                }
                let talk = match name {
                    "acp:x" => Interaction::Dialogue,
                    _ => Interaction::OneShot,
                };
                let launch = launch(name, &config(""), &request(Mode::Deny, talk, resume));
                let Err(Error::BadValue {
                    why: reason, shown, ..
                }) = launch
                else {
                    panic!("{name} took {id:?}");
                };
                assert_eq!(reason, *why, "{name}: {id:?}");
                assert!(!shown.contains(char::is_control), "{name}: {id:?}");
            }
        }
    }
}

#[test]
fn other_ids_arrive_whole_as_one_argument() {
    let longest = "x".repeat(512);
    for id in TAKEN.iter().copied().chain([longest.as_str()]) {
        for (name, places) in [("claude", 2), ("opencode", 2), ("gemini", 1)] {
            if name == "gemini" && id == "0" {
                continue;
            }
            if name == "claude" && id.contains(['/', '\\', ':']) {
                continue;
            }
            for resume in ids(id).into_iter().take(places) {
                let count = |resume| {
                    let request = request(Mode::Deny, Interaction::OneShot, resume);
                    let launch = launch(name, &config(""), &request).unwrap();
                    let same = launch.args.iter().filter(|it| *it == id).count();
                    (launch.args.len(), same)
                };
                let usual = match &resume {
                    Resume::Fork(_) => Resume::Fork(ID.to_owned()),
                    _ => Resume::Session(ID.to_owned()),
                };
                assert_eq!(count(resume), (count(usual).0, 1), "{name}: {id:?}");
            }
        }
    }
}

#[test]
fn codex_takes_uuids_alone_and_gemini_no_places() {
    let refusal = |name: &str, id: &str| {
        let resume = Resume::Session(id.to_owned());
        let launch = launch(
            name,
            &config(""),
            &request(Mode::Deny, Interaction::OneShot, resume),
        );
        launch.map(|_| ()).map_err(|it| it.to_string())
    };
    let no_uuid = |id: &str| {
        let id = id.escape_debug();
        Err(format!(
            "the session id is no UUID, which Codex needs: `{id}`"
        ))
    };
    assert_eq!(refusal("codex", ID), Ok(()));
    assert_eq!(refusal("codex", &ID.to_uppercase()), Ok(()));
    for id in TAKEN.iter().filter(|it| **it != ID) {
        assert_eq!(refusal("codex", id), no_uuid(id));
        let refused = no_uuid(id).map_err(|it| it.replace("Codex", "OpenHands"));
        assert_eq!(refusal("openhands", id), refused);
    }
    for id in ["latest", "0", "5", "99999"] {
        let refused = format!("the session id is a place in a list to Gemini CLI, no id: `{id}`");
        assert_eq!(refusal("gemini", id), Err(refused));
    }
}

#[test]
fn claude_is_never_given_a_file_or_an_address_as_a_session() {
    let ids = [
        "/home/ann/.claude/projects/-srv/x.jsonl",
        "x.jsonl",
        "X.JSONL",
        "../x.JsonL",
        "C:\\x",
        "a\\b",
        "/etc/passwd",
        "http://127.0.0.1:1/session",
        "file:x",
    ];
    for id in ids {
        for (resume, talk) in ids_and_talks(id) {
            let refused = launch("claude", &config(""), &request(Mode::Deny, talk, resume));
            let refused = refused.map(|_| ()).map_err(|it| it.to_string());
            let shown = id.escape_debug();
            let expected = format!(
                "the session id is a file or an address to Claude Code, no session: `{shown}`"
            );
            assert_eq!(refused, Err(expected));
        }
    }
}

/// Every place where an id goes, in both ways to run an agent.
fn ids_and_talks(id: &str) -> impl Iterator<Item = (Resume, Interaction)> {
    let one_shot = ids(id).map(|it| (it, Interaction::OneShot));
    one_shot
        .into_iter()
        .chain(ids(id).map(|it| (it, Interaction::Dialogue)))
}

#[test]
fn prompts_arrive_byte_for_byte_in_one_place() {
    let prompts = REFUSED.iter().map(|it| it.0).chain(TAKEN.iter().copied());
    for prompt in prompts {
        for name in ["claude", "codex", "opencode", "gemini", "openhands"] {
            let mut request = request(Mode::Deny, Interaction::OneShot, Resume::Fresh);
            request.prompt = prompt.to_owned();
            let launch = launch(name, &config(""), &request).unwrap();
            let last = launch.args.last().unwrap().to_str().unwrap();
            match (&launch.stdin, name) {
                (Stdin::Text(text), "openhands") => {
                    let lines: Vec<&str> = text.lines().collect();
                    let line: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
                    let expected = serde_json::json!({"type": "prompt", "text": prompt});
                    assert_eq!((lines.len(), line), (2, expected));
                }
                (Stdin::Text(text), _) => assert_eq!(text, prompt, "{name}"),
                (_, "gemini") => assert_eq!(last, format!("--prompt={prompt}")),
                _ => {
                    assert_eq!(last, prompt, "{name}");
                    assert_eq!(launch.args[launch.args.len() - 2], "--", "{name}");
                }
            }
        }
    }
}

#[test]
fn models_and_tools_are_never_flags() {
    for (value, _) in REFUSED {
        for name in ["claude", "codex", "opencode", "gemini", "openhands"] {
            let mut with_model = request(Mode::Deny, Interaction::OneShot, Resume::Fresh);
            with_model.options.model = Some((*value).to_owned());
            let launched = launch(name, &config(""), &with_model);
            assert!(
                matches!(
                    launched,
                    Err(Error::BadValue {
                        what: "the model",
                        ..
                    })
                ),
                "{name} {value:?}"
            );
            let mut with_tool = request(Mode::Deny, Interaction::OneShot, Resume::Fresh);
            with_tool.permissions.allow = Some(vec![(*value).to_owned()]);
            assert!(
                launch(name, &config(""), &with_tool).is_err(),
                "{name} {value:?}"
            );
        }
    }
}

#[test]
fn options_are_values_that_the_agent_knows() {
    let refusal = |name: &str, change: fn(&mut RunOptions)| {
        let mut request = request(Mode::Deny, Interaction::OneShot, Resume::Fresh);
        change(&mut request.options);
        let launch = launch(name, &config(""), &request);
        launch.map(|_| ()).map_err(|it| it.to_string())
    };
    let refusals = [
        refusal("codex", |it| it.verbosity = Some("loud".to_owned())),
        refusal("codex", |it| it.effort = Some("-rf".to_owned())),
        refusal("claude", |it| it.output_style = Some("a\nb".to_owned())),
        refusal("codex", |it| it.verbosity = Some("low".to_owned())),
    ];
    let expected = [
        Err("the verbosity is none of low, medium and high: `loud`".to_owned()),
        Err("the effort begins with `-`: `-rf`".to_owned()),
        Err("the output style holds a control character: `a\\nb`".to_owned()),
        Ok(()),
    ];
    assert_eq!(refusals, expected);
}
