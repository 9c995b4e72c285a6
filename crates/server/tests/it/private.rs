//! Files that are kept back: linkspan's own, and those that hold credentials.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::test_server::{Answer, TestServer};

/// A house with a session in the directory above its data.
async fn begin(test_server: &TestServer) -> String {
    let cwd = test_server.dir.path();
    let fields = json!({ "prompt": "x", "engine": "replay:tools", "cwd": cwd });
    test_server.submit(fields).await
}

async fn file(test_server: &TestServer, session: &str, role: &str, path: &str) -> Answer {
    let path = path.replace(' ', "%20");
    let path = format!("/api/sessions/{session}/file?path={path}");
    test_server
        .request("GET", &path, &test_server.bearer(role), "")
        .await
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[tokio::test]
async fn own_files_are_shown_to_no_one() {
    let config = tempfile::tempdir().unwrap();
    write(&config.path().join("config.toml"), "x = 1");
    let named = config.path().to_owned();
    let test_server = TestServer::with(move |it| it.own.push(named)).await;
    let session = begin(&test_server).await;
    let dir = test_server.dir.path();
    fs::hard_link(dir.join("data/token"), dir.join("second")).unwrap();
    fs::hard_link(dir.join("data/tokens.json"), dir.join("third.json")).unwrap();
    symlink("data/token", dir.join("link")).unwrap();
    symlink("data", dir.join("folder")).unwrap();
    write(&dir.join("data/new/note"), "x");
    let own = [
        "data/token",
        "data/tokens.json",
        "./data/../data/token",
        "folder/token",
        "folder/../data/token",
        "data/new/note",
        "link",
        "second",
        "third.json",
        dir.join("data/token").to_str().unwrap(),
    ]
    .map(str::to_owned);
    for role in ["watch", "prompt", "approve", "admin", "first"] {
        for path in &own {
            let answer = file(&test_server, &session, role, path).await;
            assert_eq!(
                (answer.status, answer.json()),
                (
                    403,
                    json!({ "error": {
                        "code": "forbidden",
                        "message": "linkspan's own files are never shown",
                    }})
                ),
                "{role} {path}"
            );
        }
        // A link that leads out of the directory is not followed, wherever it leads.
        symlink(config.path().join("config.toml"), dir.join(role)).unwrap();
        assert_eq!(file(&test_server, &session, role, role).await.status, 404);
    }
    write(&dir.join("notes.txt"), "fine");
    let answer = file(&test_server, &session, "watch", "notes.txt").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "fine"));
}

#[tokio::test]
async fn credentials_are_shown_to_admin_alone() {
    let test_server = TestServer::new().await;
    let session = begin(&test_server).await;
    let dir = test_server.dir.path();
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n";
    for (path, text) in [
        (".env", "A=1"),
        ("app/.env.local", "A=1"),
        (".netrc", "machine x"),
        (".ssh/config", "Host *"),
        (".aws/credentials", "x"),
        (".gnupg/private-keys-v1.d/a", "x"),
        (".claude/.credentials.json", "{}"),
        (".codex/auth.json", "{}"),
        (".gemini/oauth_creds.json", "{}"),
        (".git-credentials", "https://u:p@x"),
        (".npmrc", "x"),
        (".pypirc", "x"),
        (".docker/config.json", "{}"),
        (".kube/config", "x"),
        ("server.key", "x"),
        ("deploy.txt", key),
        ("named.txt", "nothing"),
    ] {
        write(&dir.join(path), text);
    }
    symlink("../.env", dir.join("app/settings.txt")).unwrap();
    symlink("named.txt", dir.join(".env.link")).unwrap();
    let kept = [
        (".env", "`.env*`, which usually holds credentials"),
        ("app/.env.local", "`.env*`, which usually holds credentials"),
        (
            "app/settings.txt",
            "`.env*`, which usually holds credentials",
        ),
        (".env.link", "`.env*`, which usually holds credentials"),
        (".netrc", "`.netrc`, which usually holds credentials"),
        (".ssh/config", "`.ssh/`, which usually holds credentials"),
        (
            ".aws/credentials",
            "`.aws/`, which usually holds credentials",
        ),
        (
            ".gnupg/private-keys-v1.d/a",
            "`.gnupg/`, which usually holds credentials",
        ),
        (
            ".claude/.credentials.json",
            "`.claude/.credentials.json`, which usually holds credentials",
        ),
        (
            ".codex/auth.json",
            "`.codex/auth.json`, which usually holds credentials",
        ),
        (
            ".gemini/oauth_creds.json",
            "`.gemini/oauth_creds.json`, which usually holds credentials",
        ),
        (
            ".git-credentials",
            "`.git-credentials`, which usually holds credentials",
        ),
        (".npmrc", "`.npmrc`, which usually holds credentials"),
        (".pypirc", "`.pypirc`, which usually holds credentials"),
        (
            ".docker/config.json",
            "`.docker/config.json`, which usually holds credentials",
        ),
        (".kube/config", "`.kube/`, which usually holds credentials"),
        ("server.key", "`*.key`, which usually holds credentials"),
        ("deploy.txt", "a private key"),
    ];
    for (path, why) in kept {
        for role in ["watch", "prompt", "approve"] {
            let answer = file(&test_server, &session, role, path).await;
            let message = format!("a token for `admin` is needed to read {why}");
            let expected = json!({ "error": { "code": "forbidden", "message": message } });
            assert_eq!(
                (answer.status, answer.json()),
                (403, expected),
                "{role} {path}"
            );
        }
        assert_eq!(
            file(&test_server, &session, "admin", path).await.status,
            200,
            "{path}"
        );
    }
    // Whether such a file is there is not told.
    let missing = file(&test_server, &session, "watch", "no/.env").await;
    assert_eq!(missing.status, 403);
    assert_eq!(
        file(&test_server, &session, "watch", "named.txt")
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn no_agent_works_where_linkspan_or_credentials_are() {
    let test_server = TestServer::new().await;
    let dir = test_server.dir.path().canonicalize().unwrap();
    fs::create_dir_all(dir.join("data/below")).unwrap();
    fs::create_dir_all(dir.join(".ssh/keys")).unwrap();
    symlink("data", dir.join("link")).unwrap();
    let submit = async |role: &str, cwd: &str| {
        let cwd = dir.join(cwd);
        let body = json!({ "prompt": "x", "engine": "replay:tools", "cwd": cwd }).to_string();
        test_server
            .request("POST", "/api/runs", &test_server.bearer(role), &body)
            .await
    };
    for role in ["prompt", "approve", "admin", "first"] {
        for cwd in ["data", "data/below", "link/below", "data/none"] {
            let answer = submit(role, cwd).await;
            let path = dir.join(cwd);
            let message = format!(
                "no agent works in `{}`, which is linkspan's own",
                path.display()
            );
            let expected =
                json!({ "error": { "code": "directory_not_allowed", "message": message } });
            assert_eq!(
                (answer.status, answer.json()),
                (403, expected),
                "{role} {cwd}"
            );
        }
    }
    for role in ["prompt", "approve"] {
        for cwd in [".ssh", ".ssh/keys"] {
            let answer = submit(role, cwd).await;
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (403, "directory_not_allowed")
            );
            assert!(
                answer.body.contains("a token for `admin` is needed"),
                "{answer:?}"
            );
        }
        let mut socket = test_server.socket("", role).await;
        for control in [
            json!({ "control": "run.submit", "text": "x", "workingDir": dir.join(".ssh") }),
            json!({ "control": "project.save", "project": { "workingDir": dir.join("data") } }),
            json!({ "control": "claude.session.resume", "enabled": true, "cwd": dir.join("data") }),
        ] {
            let reply = socket.call(control.clone()).await;
            assert_eq!(reply["code"], "directory_not_allowed", "{control}: {reply}");
        }
        let input = json!({
            "threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [],
            "messages": [{ "id": "1", "role": "user", "content": "x" }],
            "forwardedProps": { "linkspan": { "cwd": dir.join("data") } },
        });
        let headers = test_server.bearer(role);
        let answer = test_server
            .request("POST", "/ag-ui/replay:tools", &headers, &input.to_string())
            .await;
        assert_eq!(answer.code(), "directory_not_allowed", "{answer:?}");
    }
    assert_eq!(
        test_server.get("/api/sessions").await.json()["sessions"],
        json!([]) as Value
    );
    assert_eq!(submit("admin", ".ssh").await.status, 202);
}

#[test]
fn the_manual_lists_every_name() {
    let manual = include_str!("../../../../docs/serve.md");
    let rows = server::CREDENTIALS.iter();
    let rows: String = rows
        .map(|it| format!("| `{}` | {} |\n", it.0, it.1))
        .collect();
    let table = format!("| Name | What it usually holds |\n| --- | --- |\n{rows}");
    assert!(
        manual.contains(&table),
        "docs/serve.md should have:\n{table}"
    );
}
