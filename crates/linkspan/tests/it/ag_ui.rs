//! The endpoint in a server of somebody else's: mounted, asked, stopped.

use axum::Router;
use linkspan::ag_ui::{self, Config};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What an app with the endpoint answers: the status, and the body as it came.
async fn ask(config: Config, path: &str, input: &Value) -> (u16, String) {
    let ag_ui = ag_ui::router(config).await.unwrap();
    let app = Router::new().nest("/ag-ui", ag_ui.router.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    let body = input.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    ag_ui.stop().await;
    serving.abort();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

fn input() -> Value {
    json!({
        "threadId": "t", "runId": "r",
        "messages": [{ "id": "m", "role": "user", "content": "go" }],
    })
}

fn config() -> Config {
    Config::new(&["replay:tools", "replay:chat"]).unwrap()
}

#[tokio::test]
async fn a_mounted_endpoint_runs_its_first_engine_and_the_ones_it_serves() {
    for path in ["/ag-ui", "/ag-ui/replay:tools"] {
        let (status, body) = ask(config(), path, &input()).await;
        assert_eq!(status, 200, "{body}");
        for part in [
            r#""type":"RUN_STARTED","threadId":"t","runId":"r""#,
            "TOOL_CALL_RESULT",
            r#""outcome":{"type":"success"}"#,
        ] {
            assert!(body.contains(part), "{part} in {body}");
        }
    }
    let (status, body) = ask(config(), "/ag-ui/claude", &input()).await;
    assert_eq!(status, 404);
    assert!(
        body.contains("engine `claude` is not served here"),
        "{body}"
    );
}

#[tokio::test]
async fn client_engine_settings_count_only_if_enabled() {
    let mut input = input();
    input["forwardedProps"] = json!({ "linkspan": { "permissions": "nonsense" } });
    let (status, body) = ask(config(), "/ag-ui", &input).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("settings_left_out"), "{body}");
    let (status, body) = ask(config().with_client_settings(), "/ag-ui", &input).await;
    assert_eq!(status, 400, "{body}");
}
