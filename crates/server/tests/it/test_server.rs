//! A server to knock at, and the plainest of clients: bytes in, bytes out.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use hub::{HubConfig, Limits, QueueLife};
use journal::{Config, Journal, Memory, SystemClock};
use runner::process::Guard;
use serde_json::{Value, json};
use server::{Exposure, Keys, Listen, MAX_CLIENTS, Role, ServeConfig};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Speaks Claude's stream-json: `wait` works until it is interrupted, `ask` asks first.
/// What it was started with is in the file `args` beside it.
const AGENT: &str = r#"#!/bin/sh
echo "$*" > "$(dirname "$0")/args"
n=0
end() {
  echo '{"type":"result","subtype":"success","is_error":false,"session_id":"native-'$$'","result":"'"$1"'"}'
}
while read -r line; do
  case $line in
  *'"type":"user"'*)
    n=$((n + 1))
    echo '{"type":"system","subtype":"init","session_id":"native-'$$'","cwd":"'"$PWD"'","model":"m","tools":[]}'
    case $line in
    *wait*) ;;
    *ask*)
      echo '{"type":"assistant","session_id":"native-'$$'","message":{"id":"m'$$-$n'","role":"assistant","content":[{"type":"tool_use","id":"t'$$-$n'","name":"Bash","input":{"command":"ls"}}]}}'
      echo '{"type":"control_request","request_id":"q'$n'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t'$$-$n'"}}'
      ;;
    *)
      echo '{"type":"assistant","session_id":"native-'$$'","message":{"id":"m'$$-$n'","role":"assistant","content":[{"type":"text","text":"done"}]}}'
      end done
      ;;
    esac
    ;;
  *control_response*allow*) end allowed ;;
  *control_response*deny*) end denied ;;
  *interrupt*)
    echo '{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"native-'$$'"}'
    ;;
  esac
done
"#;

pub(crate) struct TestServer {
    pub(crate) dir: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) journal: Arc<dyn Journal>,
    tokens: HashMap<&'static str, String>,
    /// The ids of these tokens, by their role.
    pub(crate) keys: HashMap<&'static str, String>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// The code of an error.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap().to_owned()
    }
}

impl TestServer {
    pub(crate) async fn new() -> Self {
        Self::with(|_| ()).await
    }

    /// One with more in its config.
    pub(crate) async fn with_settings(more: &str) -> Self {
        Self::with(|config| {
            let dir = config.data_dir.parent().unwrap();
            config.hub.settings = parsed(dir, more);
        })
        .await
    }

    /// One whose config was changed before it was opened.
    pub(crate) async fn with(change: impl FnOnce(&mut ServeConfig)) -> Self {
        let dir = TempDir::new().unwrap();
        let agent = dir.path().join("agent");
        fs::write(&agent, AGENT).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        let journal: Arc<dyn Journal> = Arc::new(Memory::new(Config {
            clock: Arc::new(SystemClock::default()),
            cut: None,
        }));
        let mut keys = Keys::open(&dir.path().join("data"), None, None).unwrap();
        let mut tokens = HashMap::from([("first", keys.first().reveal().to_owned())]);
        let mut ids = HashMap::new();
        for role in Role::ALL {
            let (key, secret) = keys.make(role).unwrap();
            tokens.insert(role.name(), secret.reveal().to_owned());
            ids.insert(role.name(), key.id);
        }
        let mut config = config(dir.path(), Arc::clone(&journal), keys);
        change(&mut config);
        let server = server::bind(config).await.unwrap();
        let address = server.listen().parse().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run(async {
            stopped.await.ok();
        }));
        Self {
            address,
            dir,
            journal,
            tokens,
            keys: ids,
            stop: Some(stop),
            task,
        }
    }

    /// A token by its role; `first` is the one that opens everything.
    pub(crate) fn token(&self, role: &str) -> &str {
        &self.tokens[role]
    }

    /// Sends bytes, and reads until the other side hangs up.
    pub(crate) async fn knock(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        let read = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
        read.unwrap().unwrap();
        answer(&bytes)
    }

    /// A request with these header lines besides `Host` and `Connection`.
    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Answer {
        let host = self.address;
        let length = body.len();
        self.knock(&format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        ))
        .await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        let token = self.bearer("first");
        self.request("GET", path, &token, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        let token = self.bearer("first");
        self.request("POST", path, &token, &body.to_string()).await
    }

    pub(crate) fn bearer(&self, role: &str) -> String {
        format!("Authorization: Bearer {}\r\n", self.token(role))
    }

    /// Gives a prompt, and says which session it went to.
    pub(crate) async fn submit(&self, fields: Value) -> String {
        let answer = self.post("/api/runs", &fields).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["session"].as_str().unwrap().to_owned()
    }

    /// A prompt for the agent that is a script.
    pub(crate) async fn ask_agent(&self, prompt: &str) -> String {
        let cwd = self.dir.path();
        self.submit(json!({ "prompt": prompt, "engine": "claude", "cwd": cwd }))
            .await
    }

    /// A session as soon as it is as wanted.
    pub(crate) async fn until(&self, session: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let look = async {
            loop {
                let found = self.get(&format!("/api/sessions/{session}")).await.json();
                if wanted(&found) {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, look)
            .await
            .expect("it never came to that")
    }

    /// A session with so many ended runs.
    pub(crate) async fn ended(&self, session: &str, n: usize) -> Value {
        let ended = |it: &Value| {
            let runs = it["runs"].as_array().unwrap();
            runs.iter().filter(|it| !it["outcome"].is_null()).count() >= n
        };
        self.until(session, ended).await
    }

    pub(crate) async fn socket(&self, query: &str, role: &str) -> Socket {
        self.try_socket(
            query,
            &[("Authorization", &format!("Bearer {}", self.token(role)))],
        )
        .await
        .unwrap()
    }

    /// Opens a WebSocket with these headers.
    pub(crate) async fn try_socket(
        &self,
        query: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Socket, Error> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let url = format!("ws://{}/ws{query}", self.address);
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let (socket, response) = client_async(request, stream).await?;
        let protocol = response.headers().get("sec-websocket-protocol");
        let protocol = protocol.map(|it| it.to_str().unwrap().to_owned());
        Ok(Socket {
            socket,
            protocol,
            n_calls: 0,
        })
    }

    /// Ends the server in peace.
    pub(crate) async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        timeout(PATIENCE, &mut self.task).await.unwrap().unwrap();
    }
}

fn parsed(dir: &Path, more: &str) -> runner::config::Config {
    let agent = dir.join("agent");
    let text = format!(
        "[engines.claude]\nprogram = {:?}\n{more}",
        agent.to_str().unwrap()
    );
    let file = Some((Path::new("test.toml"), &*text));
    runner::config::Config::parse(file, |_| None).unwrap()
}

pub(crate) fn config(dir: &Path, journal: Arc<dyn Journal>, keys: Keys) -> ServeConfig {
    ServeConfig {
        hub: HubConfig {
            journal,
            settings: parsed(dir, ""),
            guard: Guard::None,
            locks: None,
            owner: hub::own_name(),
            queue: QueueLife::Durable,
            limits: Limits::default(),
        },
        listen: Listen::Tcp {
            address: "127.0.0.1:0".parse().unwrap(),
            keys,
        },
        data_dir: dir.join("data"),
        own: Vec::new(),
        exposure: Exposure::Loopback,
        public: Vec::new(),
        allow_origins: Vec::new(),
        roots: vec![dir.to_owned(), ".".into()],
        max_clients: MAX_CLIENTS,
    }
}

fn answer(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n");
    let (head, body) = match end {
        Some(end) => (&bytes[..end], &bytes[end + 4..]),
        None => (bytes, &[][..]),
    };
    let head = String::from_utf8_lossy(head);
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    let head = head.to_lowercase();
    let body = match head.contains("transfer-encoding: chunked") {
        true => unchunked(body),
        false => body.to_vec(),
    };
    let body = String::from_utf8_lossy(&body).into_owned();
    Answer {
        status: status.unwrap_or(0),
        head,
        body,
    }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|it| it == b"\r\n") {
        let length = str::from_utf8(&rest[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            break;
        }
        let chunk = &rest[end + 2..];
        body.extend_from_slice(&chunk[..length]);
        rest = &chunk[length + 2..];
    }
    body
}

pub(crate) struct Socket {
    pub(crate) socket: WebSocketStream<TcpStream>,
    pub(crate) protocol: Option<String>,
    n_calls: u64,
}

impl Socket {
    pub(crate) async fn send(&mut self, control: &Value) {
        self.send_text(&control.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// The next message; none when the server has hung up.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let message = timeout(PATIENCE, self.socket.next())
                .await
                .expect("silence");
            match message?.ok()? {
                Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
                Message::Close(_) => return None,
                _ => (),
            }
        }
    }

    /// The next message of this type; others are passed over.
    pub(crate) async fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next().await.expect("the server hung up");
            if message["type"] == kind {
                return message;
            }
        }
    }

    /// Sends a control and waits for its reply.
    pub(crate) async fn call(&mut self, control: Value) -> Value {
        let mut control = control;
        self.n_calls += 1;
        let request = Value::from(self.n_calls);
        control["requestId"] = request.clone();
        self.send(&control).await;
        loop {
            let mut message = self.next().await.expect("the server hung up");
            if message["requestId"] == request {
                message.as_object_mut().unwrap().remove("requestId");
                return message;
            }
        }
    }
}
