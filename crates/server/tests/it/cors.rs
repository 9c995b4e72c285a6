//! Pages of other origins: those that were named, and nobody else.

use serde_json::json;

use crate::auth::UPGRADE;
use crate::test_server::{Answer, TestServer};

const APP: &str = "http://localhost:3000";

async fn test_server() -> TestServer {
    TestServer::with(|it| {
        it.allow_origins = vec![APP.to_owned(), "https://app.example.com".to_owned()]
    })
    .await
}

/// The CORS headers of an answer, sorted.
fn cors(answer: &Answer) -> Vec<&str> {
    let lines = answer.head.lines();
    let mut lines: Vec<_> = lines
        .filter(|it| it.starts_with("access-control-") || it.starts_with("vary:"))
        .collect();
    lines.sort_unstable();
    lines
}

async fn preflight(test_server: &TestServer, path: &str, origin: &str) -> Answer {
    let headers = format!(
        "Origin: {origin}\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,content-type\r\n"
    );
    test_server.request("OPTIONS", path, &headers, "").await
}

#[tokio::test]
async fn a_named_origin_is_answered_and_may_read() {
    let test_server = test_server().await;
    for path in [
        "/ag-ui",
        "/ag-ui/replay:tools",
        "/api/sessions",
        "/api/runs",
        "/ws",
    ] {
        let answer = preflight(&test_server, path, APP).await;
        assert_eq!((answer.status, answer.body.as_str()), (204, ""), "{path}");
        assert_eq!(
            cors(&answer),
            [
                "access-control-allow-headers: authorization,content-type",
                "access-control-allow-methods: get, post, delete",
                "access-control-allow-origin: http://localhost:3000",
                "access-control-expose-headers: idempotent-replayed, retry-after, www-authenticate",
                "access-control-max-age: 600",
                "vary: origin",
            ],
            "{path}"
        );
    }
    let readable = [
        "access-control-allow-origin: http://localhost:3000",
        "access-control-expose-headers: idempotent-replayed, retry-after, www-authenticate",
        "vary: origin",
    ];
    let from = format!("Origin: {APP}\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\n");
    let headers = format!("{from}{}", test_server.bearer("prompt"));
    let answer = test_server
        .request("GET", "/api/sessions", &headers, "")
        .await;
    assert_eq!((answer.status, cors(&answer)), (200, readable.to_vec()));
    // A stream too, and what goes wrong.
    let input = json!({
        "threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [],
        "messages": [{ "id": "1", "role": "user", "content": "x" }], "forwardedProps": {},
    });
    let body = input.to_string();
    let answer = test_server
        .request("POST", "/ag-ui/replay:tools", &headers, &body)
        .await;
    assert_eq!((answer.status, cors(&answer)), (200, readable.to_vec()));
    assert!(answer.body.contains("RUN_FINISHED"), "{answer:?}");
    let answer = test_server.request("GET", "/api/sessions", &from, "").await;
    assert_eq!((answer.status, cors(&answer)), (401, readable.to_vec()));
    // A socket of that page opens with a token, as always.
    let offered = format!("linkspan, token.{}", test_server.token("watch"));
    let page = [
        ("Origin", APP),
        ("Sec-WebSocket-Protocol", offered.as_str()),
    ];
    assert!(test_server.try_socket("", &page).await.is_ok());
    assert!(test_server.try_socket("", &page[..1]).await.is_err());
}

#[tokio::test]
async fn only_the_asking_client_is_answered() {
    let test_server = test_server().await;
    let token = test_server.bearer("first");
    for origin in [
        "http://localhost:3001",
        "https://localhost:3000",
        "http://localhost:3000/",
        "http://LOCALHOST:3000",
        "http://localhost",
        "http://localhost:3000.evil.com",
        "http://evil.com/http://localhost:3000",
        "https://app.example.com:443",
        "https://evil-app.example.com",
        "null",
        "*",
        "",
    ] {
        for path in ["/ag-ui", "/api/sessions", "/ws"] {
            let answer = preflight(&test_server, path, origin).await;
            assert_eq!(
                (answer.status, cors(&answer)),
                (403, vec!["vary: origin"]),
                "{origin}"
            );
            let headers = format!("{token}{UPGRADE}Origin: {origin}\r\n");
            let answer = test_server.request("GET", path, &headers, "").await;
            assert_eq!(
                (answer.status, cors(&answer)),
                (403, vec!["vary: origin"]),
                "{origin}"
            );
        }
    }
    let twice = format!("{token}Origin: {APP}\r\nOrigin: {APP}\r\n");
    assert_eq!(
        test_server
            .request("GET", "/api/sessions", &twice, "")
            .await
            .status,
        403
    );
    // The page and its files are not for others, and a foreign host stays one.
    for path in ["/", "/assets/app.js", "/healthz", "/apix", "/ag-uix"] {
        let answer = preflight(&test_server, path, APP).await;
        assert_eq!((answer.status, cors(&answer)), (403, vec![]), "{path}");
    }
    let (port, wrong) = (test_server.address.port(), "evil.com");
    let knock = format!(
        "GET /api/sessions HTTP/1.1\r\nHost: {wrong}:{port}\r\nConnection: close\r\nOrigin: {APP}\r\n{token}\r\n"
    );
    let answer = test_server.knock(&knock).await;
    assert_eq!((answer.status, cors(&answer)), (421, vec!["vary: origin"]));
    // A site without an origin is not one that was named.
    let headers = format!("{token}Sec-Fetch-Site: cross-site\r\n");
    assert_eq!(
        test_server
            .request("GET", "/api/sessions", &headers, "")
            .await
            .status,
        403
    );
}

#[tokio::test]
async fn nothing_is_answered_unless_it_was_named() {
    let test_server = TestServer::new().await;
    let answer = preflight(&test_server, "/ag-ui", APP).await;
    assert_eq!((answer.status, cors(&answer)), (403, vec![]));
    assert_eq!(
        answer.json()["error"]["hint"],
        "`linkspan serve --allow-origin` names pages that may use the API"
    );
    let answer = test_server.get("/api/sessions").await;
    assert_eq!((answer.status, cors(&answer)), (200, vec![]));
}

#[tokio::test]
async fn only_a_whole_origin_can_be_named() {
    for origin in [
        "*",
        "null",
        "localhost:3000",
        "http://localhost:3000/",
        "http://*",
        "",
    ] {
        let test_server = TestServer::new().await;
        let keys = server::Keys::open(&test_server.dir.path().join("data"), None, None).unwrap();
        let mut config =
            crate::test_server::config(test_server.dir.path(), test_server.journal.clone(), keys);
        config.allow_origins = vec![origin.to_owned()];
        let bound = server::bind(config).await;
        assert!(
            matches!(bound, Err(server::Error::BadOrigin(_))),
            "{origin}: {bound:?}"
        );
    }
}

#[tokio::test]
async fn a_public_name_is_kept_encrypted_and_a_lost_port_is_explained() {
    let test_server =
        TestServer::with(|it| it.public = vec!["https://agents.example.com:8443".to_owned()]).await;
    let knock = async |host: &str| {
        test_server
            .knock(&format!(
                "GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            ))
            .await
    };
    let hsts = "strict-transport-security: max-age=31536000";
    let answer = knock("agents.example.com:8443").await;
    assert_eq!((answer.status, answer.head.contains(hsts)), (200, true));
    // Other servers have the same name there.
    let answer = knock(&format!("localhost:{}", test_server.address.port())).await;
    assert_eq!((answer.status, answer.head.contains(hsts)), (200, false));
    let hint = |answer: &Answer| answer.json()["error"]["hint"].as_str().unwrap().to_owned();
    let answer = knock("agents.example.com").await;
    assert_eq!(
        (answer.status, hint(&answer)),
        (
            421,
            "`Host` lacks the port: a proxy has to pass on what the browser sent (in nginx `proxy_set_header Host $http_host`)"
                .to_owned()
        )
    );
    let answer = knock("other.example.com").await;
    assert_eq!(
        hint(&answer),
        "`linkspan serve --origin` tells it more names"
    );
}
