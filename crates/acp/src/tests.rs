//! A whole connection in one process, over a journal in memory.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use journal::{Journal, Memory, Read, SystemClock};
use model::{Body, SessionId};
use runner::config::Config;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::*;

fn memory() -> Arc<dyn Journal> {
    Arc::new(Memory::new(journal::Config {
        clock: Arc::new(SystemClock::default()),
        cut: None,
    }))
}

fn config(engine: &str) -> AcpConfig {
    AcpConfig {
        version: "0.0.0",
        engine: engine.to_owned(),
        options: RunOptions::default(),
        profile: None,
        settings: Config::parse(None, |_| None).unwrap(),
        guard: Guard::None,
        locks: None,
    }
}

struct Client {
    pipe: UnixStream,
    lines: std::io::Lines<BufReader<UnixStream>>,
    n_sent: u64,
}

impl Client {
    fn new(pipe: UnixStream) -> Self {
        let lines = BufReader::new(pipe.try_clone().unwrap()).lines();
        let n_sent = 0;
        Self {
            pipe,
            lines,
            n_sent,
        }
    }

    /// Sends a request and waits for its result; whatever comes before is dropped.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.n_sent += 1;
        let id = self.n_sent;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.pipe, "{request}").unwrap();
        loop {
            let line = self.lines.next().unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }
}

/// The number of runs that the journal has the end of.
async fn n_ended(journal: &dyn Journal, session: &SessionId<'_>) -> usize {
    let page = journal.read(session, Read::page(0)).await.unwrap();
    let events = page.events.iter().filter_map(|it| it.event());
    let ended = events.filter(|it| matches!(it.body, Body::RunEnded(_)));
    ended.count()
}

#[tokio::test]
async fn the_end_of_a_run_is_stored_before_its_answer_is_sent() {
    let journal = memory();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let kept = Arc::clone(&journal);
    let input = theirs.try_clone().unwrap();
    let serving = tokio::spawn(serve(
        config("replay:failure"),
        async { kept },
        input,
        theirs,
        std::future::pending(),
    ));
    let mut client = Client::new(ours);
    let (mut client, session) = spawn_blocking(move || {
        client.ask("initialize", json!({"protocolVersion": 1}));
        let opened = client.ask("session/new", json!({"cwd": "/", "mcpServers": []}));
        (client, opened["sessionId"].as_str().unwrap().to_owned())
    })
    .await
    .unwrap();
    let id = SessionId::new(session.clone());
    for n in 1..=5 {
        let prompt = json!([{"type": "text", "text": "go"}]);
        let params = json!({"sessionId": session, "prompt": prompt});
        client = spawn_blocking(move || {
            client.ask("session/prompt", params);
            client
        })
        .await
        .unwrap();
        assert_eq!(n_ended(&*journal, &id).await, n);
    }
    drop(client);
    assert_eq!(serving.await.unwrap().n_prompts, 5);
}
