//! A session that is removed while clients of two servers follow it.

use std::io::Read;

use serde_json::{Value, json};

use crate::program::{Folder, run};
use crate::served::{Served, Socket};

/// The next message of this kind.
fn next(socket: &mut Socket, kind: &str) -> Value {
    loop {
        let message = socket.next().expect("the server hung up");
        if message["type"] == kind {
            return message;
        }
    }
}

/// Followers of a session on both servers get its end when `remove` has removed it.
fn check(name: &str, remove: impl FnOnce(&Folder, &Served, &str)) {
    let folder = Folder::new(name);
    let servers = [Served::start(&folder), Served::start(&folder)];
    let mut lists = servers.each_ref().map(|it| it.socket("linkspan"));
    let prompt = json!({ "prompt": "x", "engine": "replay:tools", "speed": 0 });
    let id = servers[0].submit(&prompt);
    servers[0].idle(&id);
    // Both servers have it in their lists.
    for socket in &mut lists {
        while next(socket, "bridge.session")["session"]["state"] != "idle" {}
    }
    let mut streams = servers.each_ref().map(|it| it.sse(&id, "0"));
    let mut sockets = servers.each_ref().map(|it| {
        let mut socket = it.socket("linkspan");
        socket.rest(&id, &json!(0));
        socket
    });
    remove(&folder, &servers[0], &id);
    for stream in &mut streams {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let end = format!("event: session_removed\ndata: {{\"session\":\"{id}\"}}\n\n");
        assert!(text.ends_with(&end), "{text}");
    }
    for socket in &mut sockets {
        let removed = json!({ "type": "bridge.session_removed", "sessionId": id });
        assert_eq!(next(socket, "bridge.session_removed"), removed);
    }
    for socket in &mut lists {
        next(socket, "bridge.sessions_changed");
    }
}

#[test]
fn the_followers_of_a_session_that_a_server_removes_get_its_end() {
    check("removed-by-server", |_, served, id| {
        let removed = served.request("DELETE", &format!("/api/sessions/{id}"), "");
        assert_eq!(removed.status, 200, "{removed:?}");
    });
}

#[test]
fn the_followers_of_a_session_that_the_command_line_removes_get_its_end() {
    check("removed-by-cli", |folder, _, id| {
        let data = folder.path("data");
        let removed = run(&["sessions", "--remove", id, "--data-dir", &data], b"");
        assert_eq!((removed.code, &*removed.stderr), (Some(0), ""));
    });
}
