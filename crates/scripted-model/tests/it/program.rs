//! The `scripted-model` program.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_scripted-model");

#[test]
fn the_program_prints_where_it_listens_and_logs_what_is_asked() {
    let folder = std::env::temp_dir().join(format!("scripted-model-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (scenario, log) = (folder.join("hello.json"), folder.join("requests.jsonl"));
    fs::write(
        &scenario,
        r#"{"lanes": {"main": [{"blocks": [{"text": "Hello."}]}]}}"#,
    )
    .unwrap();
    let mut child = Command::new(PROGRAM)
        .arg("--scenario")
        .arg(&scenario)
        .arg("--log")
        .arg(&log)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .trim_end()
        .strip_prefix("listening on http://")
        .unwrap();

    let mut socket = TcpStream::connect(address).unwrap();
    let body = r#"{"model": "m", "messages": []}"#;
    let length = body.len();
    write!(socket, "POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n")
        .unwrap();
    write!(socket, "{body}").unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();

    assert!(response.contains("Hello."), "{response}");
    let logged: Value = serde_json::from_str(&fs::read_to_string(&log).unwrap()).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(
        (&logged["path"], &logged["lane"], &logged["body"]),
        (&"/v1/messages".into(), &"main".into(), &body.into())
    );
}

#[test]
fn an_unreadable_scenario_is_reported() {
    let output = Command::new(PROGRAM)
        .args(["--scenario", "no/such/file.json"])
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), stderr.as_str()),
        (
            Some(3),
            "scripted-model: cannot read the scenario `no/such/file.json`: No such file or directory (os error 2)\n"
        ),
    );
}
