//! What a client is told about its own token.

use runner::permissions::MODES;
use serde_json::{Value, json};
use server::Role;

use crate::test_server::TestServer;

#[tokio::test]
async fn a_client_is_told_its_role_and_what_it_may_do() {
    let test_server = TestServer::new().await;
    let document = test_server.get("/api/openapi.json").await.json();
    let paths = document["paths"].as_object().unwrap();
    let routes = paths
        .values()
        .flat_map(|it| it.as_object().unwrap().values());
    let mut needed: Vec<(&str, &str)> = routes
        .filter_map(|it| Some((it["operationId"].as_str()?, it["x-role"].as_str()?)))
        .collect();
    needed.sort_unstable();
    for (name, role) in [
        ("first", Role::Admin),
        ("watch", Role::Watch),
        ("prompt", Role::Prompt),
        ("approve", Role::Approve),
        ("admin", Role::Admin),
    ] {
        let right = |name: &str, needs: &str| {
            let needs_role = Role::ALL.into_iter().find(|it| it.name() == needs).unwrap();
            json!({ "name": name, "role": needs, "allowed": role >= needs_role })
        };
        let operations: Vec<Value> = needed.iter().map(|it| right(it.0, it.1)).collect();
        let modes = MODES.iter().map(|it| match it.mode.needs_approval(false) {
            true => right(it.name, "approve"),
            false => right(it.name, "prompt"),
        });
        let expected = json!({
            "id": test_server.keys.get(name),
            "role": role.name(),
            "operations": operations,
            "permissions": modes.collect::<Vec<_>>(),
        });
        let bearer = test_server.bearer(name);
        let answer = test_server.request("GET", "/api/me", &bearer, "").await;
        let mut me = answer.json();
        let by_name = |a: &Value, b: &Value| a["name"].as_str().cmp(&b["name"].as_str());
        me["operations"].as_array_mut().unwrap().sort_by(by_name);
        assert_eq!(me, expected, "{name}");
    }
}

#[tokio::test]
async fn a_refused_route_names_the_role_that_may_and_the_one_that_asks() {
    let test_server = TestServer::new().await;
    let answer = test_server
        .request(
            "POST",
            "/api/sessions/x/abort",
            &test_server.bearer("watch"),
            "{}",
        )
        .await;
    assert_eq!(answer.status, 403);
    assert_eq!(
        answer.json()["error"],
        json!({
            "code": "forbidden",
            "message": "a token for `prompt` is needed for this",
            "hint": "this token is for `watch`; `linkspan token --role prompt` makes one that may",
        })
    );
}
