//! Where agents may work, and who may say so.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::test_server::{Answer, TestServer};

async fn submit(test_server: &TestServer, role: &str, fields: Value) -> Answer {
    let token = test_server.bearer(role);
    let mut body = json!({ "prompt": "x", "engine": "replay:tools" });
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    let body = body.to_string();
    test_server
        .request("POST", "/api/runs", &token, &body)
        .await
}

fn is_refused(answer: &Answer) -> bool {
    answer.status == 403 && answer.code() == "directory_not_allowed"
}

#[tokio::test]
async fn without_roots_a_token_reaches_what_it_reaches_anyway() {
    let test_server = TestServer::with(|it| it.roots.clear()).await;
    let elsewhere = TempDir::new().unwrap();
    let dir = elsewhere.path().canonicalize().unwrap();
    fs::create_dir_all(dir.join("a/b")).unwrap();
    for role in ["prompt", "approve"] {
        // Where the server was started, and below.
        for cwd in [".", "src", "src/../tests"] {
            let answer = submit(&test_server, role, json!({ "cwd": cwd })).await;
            assert_eq!(answer.status, 202, "{cwd}: {answer:?}");
        }
        for cwd in [
            "/",
            "..",
            "/etc",
            "/there/is/none",
            "src/../../hub",
            dir.to_str().unwrap(),
        ] {
            let answer = submit(&test_server, role, json!({ "cwd": cwd })).await;
            assert!(is_refused(&answer), "{cwd}: {answer:?}");
        }
        let gone = submit(&test_server, role, json!({ "cwd": "src/none" })).await;
        assert_eq!((gone.status, gone.code().as_str()), (400, "bad_directory"));
    }
    // A session of somebody who may say so opens its directory to the others.
    let fields = json!({ "cwd": dir.join("a"), "engine": "claude" });
    let answer = submit(&test_server, "admin", fields).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let session = answer.json()["session"].clone();
    for cwd in ["a", "a/b"] {
        let answer = submit(&test_server, "prompt", json!({ "cwd": dir.join(cwd) })).await;
        assert_eq!(answer.status, 202, "{answer:?}");
    }
    assert!(is_refused(
        &submit(&test_server, "prompt", json!({ "cwd": dir })).await
    ));
    let reply = json!({ "session": session, "engine": "claude" });
    let answer = submit(&test_server, "prompt", reply.clone()).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    // A directory that was replaced by a link is another one.
    test_server.ended(session.as_str().unwrap(), 2).await;
    fs::remove_dir_all(dir.join("a")).unwrap();
    symlink("/etc", dir.join("a")).unwrap();
    for fields in [json!({ "cwd": dir.join("a") }), reply] {
        let answer = submit(&test_server, "prompt", fields).await;
        assert!(is_refused(&answer), "{answer:?}");
    }
    test_server.stop().await;
}

#[tokio::test]
async fn roots_hold_for_every_role_and_symlinks_do_not_escape() {
    let allowed = TempDir::new().unwrap();
    let other = TempDir::new().unwrap();
    let (root, other) = (allowed.path(), other.path());
    fs::create_dir(root.join("in")).unwrap();
    symlink(other, root.join("out")).unwrap();
    symlink(root.join("in"), other.join("back")).unwrap();
    let sibling = format!("{}x", root.display());
    fs::create_dir(&sibling).unwrap();
    let test_server = TestServer::with(|it| it.roots = vec![root.to_owned()]).await;
    for role in ["first", "admin", "prompt"] {
        for cwd in [root.to_owned(), root.join("in"), other.join("back")] {
            let answer = submit(&test_server, role, json!({ "cwd": cwd })).await;
            assert_eq!(answer.status, 202, "{cwd:?}: {answer:?}");
        }
        for cwd in [
            other.to_owned(),
            root.join("out"),
            root.join("in/../.."),
            sibling.as_str().into(),
            "relative".into(),
        ] {
            let answer = submit(&test_server, role, json!({ "cwd": cwd })).await;
            assert!(is_refused(&answer), "{cwd:?}: {answer:?}");
        }
        // Nothing said is where the server was started.
        assert!(is_refused(&submit(&test_server, role, json!({})).await));
        let answer = submit(&test_server, role, json!({ "resume": "none-such" })).await;
        assert!(is_refused(&answer), "{answer:?}");
    }
    fs::remove_dir(&sibling).unwrap();
    let mut socket = test_server.socket("", "admin").await;
    let run =
        json!({ "control": "run.submit", "text": "x", "provider": "replay:tools", "cwd": other });
    let project =
        json!({ "control": "project.save", "project": { "id": "p", "workingDir": other } });
    let resume = json!({ "control": "claude.session.resume", "enabled": true, "cwd": other });
    for control in [run, project, resume] {
        let reply = socket.call(control).await;
        assert_eq!(reply["code"], "directory_not_allowed", "{reply}");
    }
    let projects = socket.call(json!({ "control": "projects" })).await;
    assert_eq!(projects["items"], json!([]));
    let project =
        json!({ "control": "project.save", "project": { "id": "p", "workingDir": root } });
    assert_eq!(socket.call(project).await["type"], "bridge.projects");
    let run = json!({ "control": "run.submit", "text": "x", "provider": "replay:tools", "projectId": "p" });
    assert_eq!(socket.call(run).await["type"], "bridge.run_submit");
    test_server.stop().await;
}
