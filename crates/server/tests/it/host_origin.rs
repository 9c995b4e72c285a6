//! Whose names are taken: hosts that are not ours, and pages that are not ours.

use serde_json::json;

use crate::auth::UPGRADE;
use crate::test_server::TestServer;

#[tokio::test]
async fn a_foreign_name_is_refused_before_anything_else() {
    let test_server = TestServer::new().await;
    let port = test_server.address.port();
    let other = port.wrapping_add(1).max(1);
    let token = test_server.bearer("first");
    let mut hosts: Vec<String> = [
        "",
        " ",
        "evil.com",
        "localhost",
        "127.0.0.1",
        "[::1]",
        "::1",
        "0",
        "0.0.0.0",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "localhost.",
        "null",
        "*",
    ]
    .iter()
    .map(|it| (*it).to_owned())
    .collect();
    for name in [
        "evil.com",
        "localhost.evil.com",
        "evil.com.localhost",
        "127.0.0.1.evil.com",
        "127.0.0.1.nip.io",
        "localtest.me",
        "lvh.me",
        "a.localhost",
        "localhost.localdomain",
        "LOCALHOST",
        "LocalHost",
        "localhost.",
        "127.0.0.1.",
        "0",
        "0.0.0.0",
        "127.1",
        "127.0.1",
        "127.0.0.2",
        "127.0.0.01",
        "127.0.0.1 ",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "017700000001",
        "0177.0.0.1",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:0:0:1]",
        "[::1%25lo]",
        "::1",
        "[::1]]",
        "user@127.0.0.1",
        "127.0.0.1@evil.com",
        "127.0.0.1#",
        "127.0.0.1/",
        "127.0.0.1,evil.com",
        "evil.com,127.0.0.1",
        "xn--lcalhost-8ib",
        "192.168.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "host.docker.internal",
        "linkspan.local",
        "%6cocalhost",
        "localhost%00",
    ] {
        hosts.push(format!("{name}:{port}"));
    }
    for name in ["localhost", "127.0.0.1", "[::1]"] {
        hosts.push(format!("{name}:{other}"));
        hosts.push(format!("{name}:0{port}"));
        hosts.push(format!("{name}:{port}0"));
        hosts.push(format!("{name}:+{port}"));
        hosts.push(format!("{name}:"));
    }
    assert!(hosts.len() >= 60, "{}", hosts.len());
    for host in &hosts {
        let forwarded =
            format!("X-Forwarded-Host: 127.0.0.1:{port}\r\nForwarded: host=127.0.0.1:{port}\r\n");
        let request = format!(
            "GET /api/sessions HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{token}{forwarded}\r\n"
        );
        let answer = test_server.knock(&request).await;
        assert!(matches!(answer.status, 400 | 421), "`{host}`: {answer:?}");
    }
    let several = [
        format!("GET / HTTP/1.1\r\nConnection: close\r\n{token}\r\n"),
        format!(
            "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.com\r\nConnection: close\r\n\r\n"
        ),
        format!(
            "GET / HTTP/1.1\r\nHost: evil.com\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        ),
        format!(
            "GET http://evil.com/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        ),
        "GET / HTTP/1.0\r\n\r\n".to_owned(),
    ];
    for request in several {
        let answer = test_server.knock(&request).await;
        assert!(matches!(answer.status, 400 | 421), "{request}: {answer:?}");
    }
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let request =
            format!("GET /healthz HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
        assert_eq!(test_server.knock(&request).await.body, "ok\n");
    }
}

#[tokio::test]
async fn a_foreign_page_is_refused_whatever_it_holds() {
    let test_server = TestServer::new().await;
    let port = test_server.address.port();
    let other = port.wrapping_add(1).max(1);
    let token = test_server.bearer("first");
    let mut origins: Vec<String> = [
        "null",
        "",
        "*",
        "file://",
        "about:blank",
        "data:",
        "blob:http://127.0.0.1",
        "chrome-extension://abcdefghijklmnop",
        "moz-extension://1",
        "http://",
        "https://",
        "http://evil.com",
        "https://evil.com",
        "http://127.0.0.1",
        "http://localhost",
        "http://[::1]",
        "vscode-webview://x",
        "app://localhost",
        "capacitor://localhost",
    ]
    .iter()
    .map(|it| (*it).to_owned())
    .collect();
    for name in [
        "evil.com",
        "localhost.evil.com",
        "127.0.0.1.evil.com",
        "evil-localhost",
        "xlocalhost",
        "localhostx",
        "a.localhost",
        "localhost.",
        "127.0.0.1.",
        "127.1",
        "127.0.0.2",
        "0.0.0.0",
        "0",
        "2130706433",
        "0x7f000001",
        "[::ffff:127.0.0.1]",
        "[::]",
        "LOCALHOST",
        "LocalHost",
        "user@localhost",
        "localhost@evil.com",
        "user:pass@127.0.0.1",
        "xn--lcalhost-8ib",
        "127.0.0.1.nip.io",
        "lvh.me",
        "localtest.me",
        "192.168.0.1",
        "%6cocalhost",
    ] {
        origins.push(format!("http://{name}:{port}"));
    }
    for name in ["127.0.0.1", "localhost", "[::1]"] {
        origins.push(format!("https://{name}:{port}"));
        origins.push(format!("HTTP://{name}:{port}"));
        origins.push(format!("ws://{name}:{port}"));
        origins.push(format!("http://{name}:{other}"));
        origins.push(format!("http://{name}:0{port}"));
        origins.push(format!("http://{name}:{port}/"));
        origins.push(format!("http://{name}:{port}.evil.com"));
        origins.push(format!("http://{name}:{port}, http://evil.com"));
        origins.push(format!("{name}:{port}"));
    }
    assert!(origins.len() >= 60, "{}", origins.len());
    for origin in &origins {
        let headers = format!("{token}{UPGRADE}Origin: {origin}\r\n");
        for path in ["/api/sessions", "/ws", "/", "/healthz"] {
            let answer = test_server.request("GET", path, &headers, "").await;
            assert_eq!(answer.status, 403, "`{origin}` {path}: {answer:?}");
        }
        let body = r#"{"prompt":"x","engine":"replay:tools"}"#;
        let answer = test_server
            .request("POST", "/api/runs", &headers, body)
            .await;
        assert_eq!(answer.status, 403, "`{origin}`");
    }
    let ours = format!("Origin: http://127.0.0.1:{port}\r\n");
    let two = format!("{token}{ours}Origin: http://evil.com\r\n");
    assert_eq!(
        test_server
            .request("GET", "/api/sessions", &two, "")
            .await
            .status,
        403
    );
    for site in ["cross-site", "same-site", "x"] {
        let headers = format!("{token}Sec-Fetch-Site: {site}\r\n");
        assert_eq!(
            test_server
                .request("GET", "/api/sessions", &headers, "")
                .await
                .status,
            403
        );
        // A link to the page is no attack.
        let headers = format!("{headers}Sec-Fetch-Mode: navigate\r\n");
        assert_eq!(
            test_server
                .request("GET", "/api/sessions", &headers, "")
                .await
                .status,
            403
        );
        assert_eq!(
            test_server.request("GET", "/", &headers, "").await.status,
            200
        );
    }
    for site in ["same-origin", "none"] {
        let headers = format!("{token}{ours}Sec-Fetch-Site: {site}\r\n");
        let answer = test_server
            .request("GET", "/api/sessions", &headers, "")
            .await;
        assert_eq!(answer.status, 200);
        assert!(!answer.head.contains("access-control-"), "{}", answer.head);
    }
    let sessions = test_server.get("/api/sessions").await.json();
    assert_eq!(sessions["sessions"], json!([]));
}
