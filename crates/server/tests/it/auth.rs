//! Nobody gets in who should not: tokens, roles, and what is shown to whom.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use server::{Exposure, Keys, Listen, Role};
use tokio_tungstenite::tungstenite::Error;

use crate::test_server::{TestServer, config};

/// Method, path and role of every route, from the document that the server itself gives.
async fn routes(test_server: &TestServer) -> Vec<(String, String, Option<String>)> {
    let document = test_server.get("/api/openapi.json").await.json();
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let role = operation["x-role"].as_str().map(str::to_owned);
            routes.push((method.to_uppercase(), path.clone(), role));
        }
    }
    routes
}

/// A path without braces.
fn filled(path: &str, session: &str, ask: &str, number: u64) -> String {
    let id = if path.starts_with("/api/asks") {
        ask
    } else {
        session
    };
    path.replace("{path}", "app.js")
        .replace("{id}", id)
        .replace("{n}", &number.to_string())
}

/// What a WebSocket needs to be opened; other routes do not mind.
pub(crate) const UPGRADE: &str = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

#[tokio::test]
async fn no_route_opens_without_the_right_token() {
    let test_server = TestServer::new().await;
    let work = Work::begin(&test_server).await;
    let before = work.look(&test_server).await;
    let token = test_server.token("first").to_owned();
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let wrong = [
        String::new(),
        bearer(""),
        bearer("x"),
        bearer(&token[..token.len() - 1]),
        bearer(&token[1..]),
        bearer(&format!("{token}x")),
        bearer(&format!("{token} x")),
        bearer(&token.to_uppercase()),
        bearer(&token.replace("lsp_", "")),
        bearer(&format!("{token}\u{e9}")),
        format!("Authorization: Bearer{token}\r\n"),
        format!("Authorization: Bearer  {token}\r\n"),
        format!("Authorization: Bearer\t{token}\r\n"),
        format!("Authorization: Digest {token}\r\n"),
        format!("Authorization: Token {token}\r\n"),
        format!("Authorization: Bearer \"{token}\"\r\n"),
        format!("Authorization: Bearer x, Bearer {token}\r\n"),
        format!("{}{}", bearer(&token), bearer(&token)),
        format!("Authorization: {token}\r\n"),
        format!("Authorization: Basic {token}\r\n"),
        format!("X-Token: {token}\r\n"),
        format!("X-Api-Key: {token}\r\n"),
        format!("Proxy-Authorization: Bearer {token}\r\n"),
        format!("Cookie: token={token}; linkspan={token}\r\n"),
        format!("Sec-WebSocket-Protocol: linkspan, token.{token}x\r\n"),
        format!("Sec-WebSocket-Protocol: {token}\r\n"),
    ];
    let mut n_public = 0;
    for (method, path, role) in routes(&test_server).await {
        if role.is_none() {
            n_public += 1;
            continue;
        }
        let path = work.path(&path);
        let body = r#"{"prompt":"x","engine":"replay:tools","decision":"allow"}"#;
        for headers in &wrong {
            let headers = format!("{UPGRADE}{headers}");
            let answer = test_server.request(&method, &path, &headers, body).await;
            let is_refused = matches!(answer.status, 401 | 429);
            assert!(is_refused, "{method} {path} {headers}: {answer:?}");
        }
        let path = format!("{path}?token={token}&access_token={token}");
        let answer = test_server.request(&method, &path, UPGRADE, body).await;
        assert!(
            matches!(answer.status, 401 | 429),
            "{method} {path}: {answer:?}"
        );
    }
    assert_eq!(n_public, 3, "the page, its files, and `/healthz`");
    assert_eq!(work.look(&test_server).await, before);
}

/// A session that waits for an answer, with a prompt behind it: there is something to stop, to take
/// back, to answer.
pub(crate) struct Work {
    session: String,
    pub(crate) ask: String,
    number: u64,
}

impl Work {
    pub(crate) async fn begin(test_server: &TestServer) -> Self {
        let session = test_server.ask_agent("ask").await;
        test_server
            .until(&session, |it| it["state"] == "waiting")
            .await;
        let later = json!({ "prompt": "later", "session": session });
        let number = test_server.post("/api/runs", &later).await.json()["number"].clone();
        let ask = test_server.get("/api/asks").await.json()["asks"][0]["id"].clone();
        Self {
            session,
            ask: ask.as_str().unwrap().to_owned(),
            number: number.as_u64().unwrap(),
        }
    }

    fn path(&self, path: &str) -> String {
        filled(path, &self.session, &self.ask, self.number)
    }

    /// Everything that a request could change.
    pub(crate) async fn look(&self, test_server: &TestServer) -> Value {
        let mut socket = test_server.socket("", "first").await;
        let projects = socket.call(json!({ "control": "projects" })).await;
        let status = socket.call(json!({ "control": "bridge.status" })).await;
        json!({
            "sessions": test_server.get("/api/sessions").await.json(),
            "session": test_server.get(&format!("/api/sessions/{}", self.session)).await.json(),
            "asks": test_server.get("/api/asks").await.json(),
            "projects": projects,
            "provider": status["provider"],
        })
    }
}

#[tokio::test]
async fn no_method_opens_a_route_without_a_token() {
    let test_server = TestServer::new().await;
    let methods = [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get",
    ];
    for (_, path, role) in routes(&test_server).await {
        let path = filled(&path, "x", "x", 1);
        for method in methods {
            let answer = test_server.request(method, &path, UPGRADE, "{}").await;
            let is_public = role.is_none() && matches!(method, "GET" | "HEAD");
            let is_open = matches!(answer.status, 200..400);
            assert_eq!(is_open, is_public, "{method} {path}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn every_route_looks_at_names_before_tokens() {
    let test_server = TestServer::new().await;
    let (port, token) = (test_server.address.port(), test_server.bearer("first"));
    for (method, path, _) in routes(&test_server).await {
        let path = filled(&path, "x", "x", 1);
        let knock = format!(
            "{method} {path} HTTP/1.1\r\nHost: evil.com:{port}\r\nConnection: close\r\n{token}{UPGRADE}\r\n"
        );
        assert_eq!(
            test_server.knock(&knock).await.status,
            421,
            "{method} {path}"
        );
        let headers = format!("{token}{UPGRADE}Origin: http://evil.com:{port}\r\n");
        let answer = test_server.request(&method, &path, &headers, "{}").await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "foreign_page")
        );
    }
}

#[tokio::test]
async fn no_socket_opens_without_the_right_token() {
    let test_server = TestServer::new().await;
    let token = test_server.token("first").to_owned();
    let headers = [
        ("Accept", "*/*".to_owned()),
        ("Authorization", "Bearer x".to_owned()),
        ("Authorization", format!("Basic {token}")),
        ("Authorization", format!("Bearer {}", &token[1..])),
        ("Cookie", format!("token={token}")),
        ("X-Token", token.clone()),
        (
            "Sec-WebSocket-Protocol",
            format!("linkspan, token.{token}x"),
        ),
        ("Sec-WebSocket-Protocol", format!("linkspan, {token}")),
    ];
    for (name, value) in headers {
        for query in [
            String::new(),
            format!("?token={token}&access_token={token}"),
        ] {
            let opened = test_server.try_socket(&query, &[(name, &value)]).await;
            let refused = match opened {
                Err(Error::Http(response)) => response.status().as_u16(),
                other => panic!("{name}: {value}: {:?}", other.map(|_| "open")),
            };
            assert!(matches!(refused, 401 | 429), "{name}: {value}: {refused}");
        }
    }
}

#[tokio::test]
async fn every_role_may_use_exactly_its_routes() {
    let test_server = TestServer::new().await;
    let roles = ["watch", "prompt", "approve", "admin"];
    let rank = |role: &str| roles.iter().position(|it| *it == role).unwrap();
    for (method, path, needed) in routes(&test_server).await {
        let Some(needed) = needed else { continue };
        let path = filled(&path, "x", "x", 1);
        for role in roles {
            // Nothing in it can be done: whoever may is told that it is a bad request.
            let answer = test_server
                .request(&method, &path, &test_server.bearer(role), "{")
                .await;
            let is_refused = answer.status == 403;
            assert_eq!(
                is_refused,
                rank(role) < rank(&needed),
                "{role} {method} {path}"
            );
        }
    }
}

#[tokio::test]
async fn a_prompt_that_pre_approves_needs_the_approve_role() {
    let test_server = TestServer::new().await;
    let prompts = [
        (json!({ "permissions": "allow" }), "approve"),
        (json!({ "permissions": "accept-edits" }), "approve"),
        (json!({ "allow": ["Bash"] }), "approve"),
        (json!({ "engine": "acp:/bin/sh -c id" }), "admin"),
        (json!({ "engine": "replay:/etc/passwd" }), "admin"),
    ];
    for (mut fields, needed) in prompts {
        fields["prompt"] = "x".into();
        let body = fields.to_string();
        let bearer = test_server.bearer(if needed == "admin" {
            "approve"
        } else {
            "prompt"
        });
        let answer = test_server
            .request("POST", "/api/runs", &bearer, &body)
            .await;
        assert_eq!(answer.status, 403, "{fields}");
        assert!(answer.body.contains(needed), "{fields}: {}", answer.body);
    }
    let sessions = test_server.get("/api/sessions").await.json();
    assert_eq!(sessions["sessions"], json!([]));
}

#[tokio::test]
async fn every_response_has_a_content_security_policy() {
    let test_server = TestServer::new().await;
    let answers = [
        test_server.get("/").await,
        test_server.get("/assets/app.js").await,
        test_server.get("/healthz").await,
        test_server.get("/api/sessions").await,
        test_server.get("/api/sessions/none").await,
        test_server.get("/nowhere").await,
        test_server.post("/", &json!({})).await,
        test_server.request("GET", "/api/sessions", "", "").await,
        test_server
            .request("GET", "/", "Origin: null\r\n", "")
            .await,
        test_server
            .knock("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .await,
    ];
    for answer in answers {
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(answer.head.contains(header), "{header}: {answer:?}");
        }
        assert!(!answer.head.contains("set-cookie"), "{answer:?}");
        if answer.status >= 400 {
            assert!(!answer.code().is_empty());
        }
    }
}

#[tokio::test]
async fn wrong_tokens_are_rate_limited_and_valid_ones_are_not() {
    let test_server = TestServer::new().await;
    let wrong = "Authorization: Bearer wrong\r\n";
    let mut statuses = Vec::new();
    for _ in 0..12 {
        statuses.push(
            test_server
                .request("GET", "/api/sessions", wrong, "")
                .await
                .status,
        );
    }
    let mut expected = vec![401; 10];
    expected.extend([429, 429]);
    assert_eq!(statuses, expected);
    assert_eq!(test_server.get("/api/sessions").await.status, 200);
}

#[tokio::test]
async fn a_revoked_token_closes_what_it_opened_within_a_second() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("?format=linkspan", "watch").await;
    let mut other = test_server.socket("?format=linkspan", "prompt").await;
    let mut keys = Keys::open(&test_server.dir.path().join("data"), None, None).unwrap();
    keys.revoke(&test_server.keys["watch"]).unwrap();
    let began = Instant::now();
    while socket.next().await.is_some() {}
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    let headers = test_server.bearer("watch");
    assert_eq!(
        test_server
            .request("GET", "/api/sessions", &headers, "")
            .await
            .status,
        401
    );
    assert_eq!(
        other.call(json!({ "control": "echo", "tag": 1 })).await["tag"],
        1
    );
}

#[tokio::test]
async fn a_token_that_was_just_made_is_taken_at_once() {
    let test_server = TestServer::new().await;
    let mut keys = Keys::open(&test_server.dir.path().join("data"), None, None).unwrap();
    for _ in 0..3 {
        let (_, secret) = keys.make(Role::Watch).unwrap();
        let headers = format!("Authorization: Bearer {}\r\n", secret.reveal());
        let answer = test_server
            .request("GET", "/api/sessions", &headers, "")
            .await;
        assert_eq!(answer.status, 200);
    }
}

#[tokio::test]
async fn browsers_bring_their_token_as_a_subprotocol() {
    let test_server = TestServer::new().await;
    let offered = format!("linkspan, token.{}", test_server.token("watch"));
    let socket = test_server
        .try_socket("", &[("Sec-WebSocket-Protocol", &offered)])
        .await
        .unwrap();
    assert_eq!(socket.protocol.as_deref(), Some("linkspan"));
    let offered = "linkspan, token.wrong";
    assert!(
        test_server
            .try_socket("", &[("Sec-WebSocket-Protocol", offered)])
            .await
            .is_err()
    );
    // That is for sockets alone.
    let headers = format!(
        "Sec-WebSocket-Protocol: token.{}\r\n",
        test_server.token("watch")
    );
    assert_eq!(
        test_server
            .request("GET", "/api/sessions", &headers, "")
            .await
            .status,
        401
    );
}

#[tokio::test]
async fn an_address_that_others_reach_needs_encryption() {
    let test_server = TestServer::new().await;
    for (listen, exposure, is_refused) in [
        ("0.0.0.0:0", Exposure::Loopback, true),
        ("[::]:0", Exposure::Loopback, true),
        ("192.168.0.1:0", Exposure::Loopback, true),
        ("169.254.169.254:0", Exposure::Loopback, true),
        ("127.0.0.2:0", Exposure::Loopback, false),
        ("127.0.0.1:0", Exposure::BehindProxy, false),
        ("0.0.0.0:0", Exposure::BehindProxy, false),
    ] {
        let keys = || Keys::open(&test_server.dir.path().join("data"), None, None).unwrap();
        let mut config = config(test_server.dir.path(), test_server.journal.clone(), keys());
        config.listen = Listen::Tcp {
            address: listen.parse().unwrap(),
            keys: keys(),
        };
        config.exposure = exposure;
        let bound = server::bind(config).await;
        let refused = matches!(bound, Err(server::Error::Exposed(_)));
        assert_eq!(refused, is_refused, "{listen}: {bound:?}");
    }
}

#[test]
fn every_route_is_in_the_table() {
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![sources];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let adds = [
                ".route(",
                ".route_service(",
                ".nest",
                ".merge(",
                ".fallback_service(",
            ];
            // The library's routes are mounted by others, who decide who may reach them.
            if path.ends_with("ag_ui/library.rs") {
                continue;
            }
            let n: usize = adds.iter().map(|it| text.matches(it).count()).sum();
            if n > 0 {
                found.push((path.file_name().unwrap().to_str().unwrap().to_owned(), n));
            }
        }
    }
    assert_eq!(found, [("routes.rs".to_owned(), 1)]);
}
