//! The server with a certificate, and who may reach it without one. The certificate is a fixture that
//! is good for a hundred years; its key opens nothing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use serde_json::json;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};

use crate::program::{Folder, linkspan, run};
use crate::served::{PATIENCE, Served, check, serve};

const CERT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls/cert.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls/key.pem");

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A client that trusts the fixture and nobody else.
fn connect(served: &Served) -> Tls {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(CERT).unwrap())
        .unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "127.0.0.1".try_into().unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(client, plain(served))
}

fn plain(served: &Served) -> TcpStream {
    let stream = TcpStream::connect(&served.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What comes back for a request, as far as anything does.
fn ask(mut stream: impl Read + Write, served: &Served, request: &str, body: &str) -> String {
    let (host, token, length) = (&served.address, &served.token, body.len());
    let request = format!(
        "{request} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A server that hangs up without a word has answered, too.
    stream.read_to_end(&mut answer).ok();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn with_a_certificate_everything_is_encrypted() {
    let folder = Folder::new("tls");
    let mut command = serve(&folder);
    command.args(["--tls-cert", CERT, "--tls-key", KEY]);
    let served = Served::from(&mut command, &folder);
    let data = folder.path("data");
    let page = run(&["token", "--data-dir", &data], b"");
    let url = format!("https://{}/#token={}\n", served.address, served.token);
    assert_eq!(page.stdout, url);

    let mut socket = served.socket_over(connect(&served), "wss", "linkspan");
    socket.subscribe(json!({}));
    let prompt = json!({ "prompt": "x", "engine": "replay:tools" }).to_string();
    let taken = ask(connect(&served), &served, "POST /api/runs", &prompt);
    assert!(taken.starts_with("HTTP/1.0 202"), "{taken}");
    let mut heard = Vec::new();
    while heard
        .last()
        .is_none_or(|it: &String| !it.contains("\"run.ended\""))
    {
        let message = socket.next().unwrap();
        if message["seq"].is_u64() {
            heard.push(message.to_string());
        }
    }
    check(&heard);

    let refused = ask(plain(&served), &served, "GET /api/sessions", "");
    assert!(!refused.contains("HTTP/"), "{refused}");
    let open = ask(plain(&served), &served, "GET /healthz", "");
    assert!(!open.contains("HTTP/"), "{open}");
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let folder = Folder::new("tls-bad");
    let data = folder.path("data");
    let letter = folder.file("letter.pem", "Dear Ann");
    let missing = folder.path("none.pem");
    for (cert, key, named) in [
        (CERT, &*letter, &*letter),
        (&*missing, KEY, &*missing),
        (&*letter, KEY, &*letter),
    ] {
        let args = ["serve", "--listen", "127.0.0.1:0", "--data-dir", &data];
        let ran = run(
            &[&args[..], &["--tls-cert", cert, "--tls-key", key]].concat(),
            b"",
        );
        assert_eq!(ran.code, Some(3), "{}", ran.stderr);
        let words = format!("cannot use `{named}` to encrypt");
        assert!(ran.stderr.contains(&words), "{}", ran.stderr);
    }
}

#[test]
fn what_other_machines_may_reach_starts_behind_a_proxy_only() {
    let folder = Folder::new("tls-proxy");
    // No other machine reaches it in fact, but nobody can tell by the address.
    let listen = "[::ffff:127.0.0.1]:0";
    let data = folder.path("data");
    let args = ["serve", "--listen", listen, "--data-dir", &data];
    let refused = run(&args, b"");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let hint = "hint: give `--tls-cert` and `--tls-key`, or `--behind-proxy`";
    assert!(refused.stderr.contains(hint), "{}", refused.stderr);
    let mut command = linkspan(&args);
    command.arg("--behind-proxy").env_remove("LINKSPAN_TOKEN");
    let served = Served::from(&mut command, &folder);
    assert_eq!(served.request("GET", "/healthz", "").status, 200);
}
