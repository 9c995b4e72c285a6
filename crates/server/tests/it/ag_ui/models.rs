//! Models behind the endpoint, played by a script.

use std::io::Write;
use std::sync::LazyLock;

use jsonschema::Validator;
use scripted_model::{Scenario, Server};
use serde_json::{Value, json};

use super::{end, input, texts, types, user};
use crate::test_server::TestServer;

/// Nobody may see it.
const CANARY: &str = "sk-canary-6f1d0c2b9a";

pub(super) struct World {
    pub(super) test_server: TestServer,
    pub(super) model: Server,
    _key: tempfile::NamedTempFile,
}

impl World {
    pub(super) async fn new(turns: Value) -> Self {
        Self::with(turns, "").await
    }

    /// With more keys for the endpoint.
    pub(super) async fn with(turns: Value, more: &str) -> Self {
        let model = Server::start(script(turns)).unwrap();
        let mut key = tempfile::NamedTempFile::new().unwrap();
        writeln!(key, "{CANARY}").unwrap();
        let test_server = TestServer::with_settings(&format!(
            "[engines.responses.local]\nbase_url = \"{}\"\nmodel = \"m1\"\napi_key_file = {:?}\n{more}\n",
            model.url(),
            key.path()
        ))
        .await;
        Self {
            test_server,
            model,
            _key: key,
        }
    }

    pub(super) async fn run(&self, input: &Value) -> Vec<Value> {
        self.test_server.run("responses:local", input).await
    }

    /// What the model was asked, in the words of the specification.
    pub(super) fn requests(&self) -> Vec<Value> {
        let requests = self.model.requests();
        let bodies = requests.iter().map(|it| serde_json::from_str(&it.body));
        let bodies: Vec<Value> = bodies.map(Result::unwrap).collect();
        bodies.iter().for_each(check);
        bodies
    }
}

/// What the specification says of requests.
fn check(request: &Value) {
    static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
        let schema = include_str!("../../../../../fixtures/openresponses/openapi.json");
        let mut schema: Value = serde_json::from_str(schema).unwrap();
        schema["$ref"] = "#/components/schemas/CreateResponseBody".into();
        jsonschema::validator_for(&schema).unwrap()
    });
    let errors = VALIDATOR.iter_errors(request);
    let errors: Vec<String> = errors
        .map(|it| format!("{}: {it}", it.instance_path()))
        .collect();
    assert_eq!(errors, Vec::<String>::new(), "{request:#}");
}

fn script(turns: Value) -> Scenario {
    let lanes = json!({ "lanes": { "main": turns } });
    Scenario::from_json(&lanes.to_string()).unwrap()
}

pub(super) fn text(text: &str) -> Value {
    json!({ "blocks": [{ "text": text }] })
}

#[tokio::test]
async fn a_text_is_streamed() {
    let world =
        World::new(json!([{ "blocks": [{ "thinking": "Hm." }, { "text": "Hello there" }] }])).await;
    let events = world
        .run(&input("t", "r1", json!([user("m1", "hi")])))
        .await;
    assert_eq!(texts(&events), "Hello there");
    let finished = end(&events);
    assert_eq!(finished["outcome"], json!({ "type": "success" }));
    assert_eq!(finished["usage"][0]["model"], "m1");
    assert!(types(&events).contains(&"REASONING_MESSAGE_CONTENT"));
    let expected = json!({
        "model": "m1", "stream": true, "store": true,
        "input": [{ "type": "message", "role": "user", "content": "hi" }],
    });
    assert_eq!(world.requests(), [expected]);
}

#[tokio::test]
async fn the_applications_tools_are_called_and_answered() {
    let call = json!({ "blocks": [
        { "text": "Let me see." },
        { "tool": "weather", "input": { "city": "Oslo" } },
        { "tool": "weather", "input": { "city": "Rome" } },
    ] });
    let world = World::new(json!([call, text("Cold and warm.")])).await;
    let mut request = input("t", "r1", json!([user("m1", "weather?")]));
    let tools = json!([{
        "name": "weather", "description": "tells it",
        "parameters": { "type": "object", "properties": { "city": { "type": "string" } } },
    }]);
    request["tools"] = tools.clone();
    let events = world.run(&request).await;
    let finished = end(&events);
    let calls = finished["outcome"]["pendingToolCallIds"]
        .as_array()
        .unwrap();
    assert_eq!(calls.len(), 2);
    assert_eq!(
        world.requests()[0]["tools"],
        json!([{
            "type": "function", "name": "weather", "description": "tells it",
            "parameters": { "type": "object", "properties": { "city": { "type": "string" } } },
        }])
    );
    let tool_call = |id: &Value, city: &str| {
        let arguments = format!("{{\"city\":\"{city}\"}}");
        json!({ "id": id, "type": "function", "function": { "name": "weather", "arguments": arguments } })
    };
    let mut next = input(
        "t",
        "r2",
        json!([
            user("m1", "weather?"),
            { "id": "a", "role": "assistant", "content": "Let me see.",
              "toolCalls": [tool_call(&calls[0], "Oslo"), tool_call(&calls[1], "Rome")] },
            { "id": "t1", "role": "tool", "toolCallId": calls[0], "content": "-5" },
            { "id": "t2", "role": "tool", "toolCallId": calls[1], "content": "25" },
        ]),
    );
    next["tools"] = tools;
    let events = world.run(&next).await;
    assert_eq!(texts(&events), "Cold and warm.");
    let output = |id: &Value, text: &str| json!({ "type": "function_call_output", "call_id": id, "output": text });
    assert_eq!(
        world.requests()[1]["input"],
        json!([output(&calls[0], "-5"), output(&calls[1], "25")])
    );
}

#[tokio::test]
async fn every_failure_has_one_end_and_a_code() {
    let refused = |status: u16, code: &str| json!({ "status": status, "body": { "error": { "message": format!("no, {CANARY}"), "code": code } } });
    let rows = [
        (json!([refused(401, "invalid_api_key")]), "invalid_api_key"),
        (json!([refused(400, "bad")]), "bad"),
        (
            json!([{ "blocks": [{ "text": "half an answer" }], "cut_after_chunks": 1, "cut": "end" }]),
            "upstream_truncated",
        ),
        (
            json!([{ "blocks": [{ "text": "half an answer" }], "cut_after_chunks": 1, "cut": "drop" }]),
            "connection_lost",
        ),
        (
            json!([{ "blocks": [{ "text": "half" }], "failed": { "code": "server_error", "message": "broken" } }]),
            "server_error",
        ),
    ];
    for (turns, code) in rows {
        let world = World::new(turns.clone()).await;
        let events = world
            .run(&input("t", "r1", json!([user("m1", "hi")])))
            .await;
        assert_eq!(end(&events)["code"], code, "{turns} {events:#?}");
        assert!(!format!("{events:?}").contains(CANARY));
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again_before_the_first_byte() {
    let busy = |status: u16| json!({ "status": status, "message": "busy", "headers": { "retry-after": "0" } });
    let world = World::new(json!([busy(429), busy(500), text("at last")])).await;
    let events = world
        .run(&input("t", "r1", json!([user("m1", "hi")])))
        .await;
    assert_eq!(texts(&events), "at last");
    assert_eq!(world.model.requests().len(), 3);
    let notices = events.iter().filter(|it| it["name"] == "linkspan.notice");
    assert_eq!(
        notices
            .filter(|it| it["value"]["code"] == "api_retry")
            .count(),
        2
    );

    let world = World::with(json!([busy(503), busy(503)]), "max_retries = 1").await;
    let events = world
        .run(&input("t", "r1", json!([user("m1", "hi")])))
        .await;
    assert_eq!(end(&events)["type"], "RUN_ERROR");
    assert_eq!(world.model.requests().len(), 2);
}

#[tokio::test]
async fn a_refused_connection_and_a_missing_key_are_run_errors() {
    let test_server = TestServer::with_settings(
        "[engines.responses.dead]\nbase_url = \"http://127.0.0.1:9\"\nmodel = \"m\"\nmax_retries = 0\n\
         [engines.responses.keyless]\nbase_url = \"http://127.0.0.1:9\"\nmodel = \"m\"\napi_key_env = \"LINKSPAN_TEST_NO_SUCH_KEY\"\n",
    )
    .await;
    for (engine, code) in [
        ("responses:dead", "unreachable"),
        ("responses:keyless", "bad_endpoint"),
    ] {
        let events = test_server
            .run(engine, &input("t", "r1", json!([user("m1", "hi")])))
            .await;
        assert_eq!(end(&events)["code"], code, "{events:#?}");
    }
}

#[tokio::test]
async fn what_a_model_cannot_take_is_refused_by_its_field() {
    let world = World::new(json!([])).await;
    let video = json!([{ "id": "m", "role": "user", "content": [
        { "type": "video", "source": { "type": "url", "value": "https://x/v.mp4" } },
    ] }]);
    let answer = world
        .test_server
        .post("/ag-ui/responses:local", &input("t", "r", video))
        .await;
    assert_eq!(answer.status, 400);
    let message = "`messages[0].content[0]` is a video, which no model takes from a user";
    assert_eq!(answer.json()["error"]["message"], message);
}

#[tokio::test]
async fn the_key_is_sent_to_the_endpoint_only() {
    let echo = json!({
        "blocks": [{ "text": "half" }],
        "failed": { "code": "server_error", "message": format!("your key is {CANARY}, is it not") },
    });
    let world = World::new(json!([echo, { "status": 401, "message": CANARY }])).await;
    let first = world
        .run(&input("t", "r1", json!([user("m1", "hi")])))
        .await;
    let second = world
        .run(&input("u", "r1", json!([user("m1", "hi")])))
        .await;
    assert_eq!(end(&second)["type"], "RUN_ERROR");
    assert!(!format!("{first:?}{second:?}").contains(CANARY));
    let sessions = world.test_server.get("/api/sessions").await.json();
    for session in sessions["sessions"].as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        let rows = world
            .test_server
            .get(&format!("/api/sessions/{id}/events"))
            .await;
        assert!(!rows.body.contains(CANARY));
    }
    let engines = world.test_server.get("/api/engines").await;
    assert!(!engines.body.contains(CANARY));
    let headers = format!("{:?}", world.model.requests()[0].headers);
    assert!(headers.contains("authorization"), "{headers}");
}
