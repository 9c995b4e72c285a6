//! The OpenAPI document, generated from the table of routes.

use axum::http::StatusCode;
use axum::response::Response;
use formats::ag_ui::PROTO_TYPE;
use formats::registry;
use serde_json::{Map, Value, json};

use crate::error::reply;
use crate::routes::{Access, ROUTES, Route};
use crate::ws;

/// What bodies and events look like; `schema_tests` derives it from the types.
const SCHEMAS: &str = include_str!("openapi/schemas.json");

pub(crate) async fn show() -> Response {
    reply(StatusCode::OK, &document())
}

fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        // OpenAPI has no parameters that span several segments.
        let path = route.path.replace("{*", "{");
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[route.method.as_str().to_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "linkspan serve",
            "description": "Gives prompts to coding agents, and shows what they do.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
        },
        // Where this document was read from, also behind a proxy.
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "responses": refusals(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn schemas() -> Value {
    let mut schemas: Value = serde_json::from_str(SCHEMAS).unwrap_or_default();
    schemas["RunAgentInput"] = run_agent_input();
    schemas
}

/// AG-UI's own type, as far as it is read here.
fn run_agent_input() -> Value {
    let id = json!({ "type": "string", "minLength": 1, "maxLength": 512 });
    let objects = json!({ "type": "array", "items": { "type": "object" } });
    json!({
        "type": "object",
        "required": ["threadId", "runId", "messages"],
        "properties": {
            "threadId": id,
            "runId": id,
            "messages": objects,
            "tools": objects,
            "context": objects,
            "state": {},
            "forwardedProps": { "type": "object" },
            "resume": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["interruptId", "status"],
                    "properties": {
                        "interruptId": { "type": "string" },
                        "status": { "enum": ["resolved", "cancelled"] },
                        "payload": {},
                    },
                },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "responses": {
            "default": { "$ref": "#/components/responses/Error" },
        },
    });
    operation["security"] = match route.access {
        Access::Role(role) => {
            operation["x-role"] = role.name().into();
            json!([{ "token": [] }])
        }
        Access::Public => json!([]),
    };
    if route.path == "/ws" {
        operation["x-controls"] = controls();
    }
    let mut parameters: Vec<Value> = in_path(route.path)
        .map(|it| parameter(route.path, it, ParameterPlace::Path))
        .chain(
            in_query(route.path)
                .iter()
                .map(|it| parameter(route.path, it, ParameterPlace::Query)),
        )
        .collect();
    if route.path == "/api/runs" {
        parameters.push(idempotency_key());
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    let (taken, given) = bodies(route);
    if let Some(schema) = taken {
        operation["requestBody"] = json!({ "required": true, "content": content(schema) });
    }
    let (status, words) = match route.path {
        "/ws" => ("101", "A WebSocket"),
        "/api/runs" => ("202", "The prompt was taken"),
        _ => ("200", "Done"),
    };
    operation["responses"][status] = match given {
        ResponseBody::Json(schema) => json!({ "description": words, "content": content(schema) }),
        ResponseBody::Raw(kinds) => {
            let kinds = kinds.iter().map(|it| ((*it).to_owned(), json!({})));
            json!({ "description": words, "content": kinds.collect::<Map<_, _>>() })
        }
        ResponseBody::Nothing => json!({ "description": words }),
    };
    for refusal in REFUSALS.iter().filter(|it| (it.happens)(route)) {
        let at = format!("#/components/responses/{}", refusal.name);
        operation["responses"][refusal.status] = json!({ "$ref": at });
    }
    operation
}

fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key", "in": "header", "required": false,
        "description": "the prompt of this key is run once, however often it is sent",
        "schema": { "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$" },
    })
}

/// The controls of the bridge, which OpenAPI cannot express.
fn controls() -> Value {
    let controls = ws::CONTROLS.iter().map(|it| {
        json!({
            "control": it.name, "x-role": it.role.name(), "reply": it.reply, "example": it.example,
        })
    });
    controls.collect()
}

/// A status that something is refused with, and where.
struct Refusal {
    status: &'static str,
    name: &'static str,
    words: &'static str,
    happens: fn(&Route) -> bool,
}

const REFUSALS: &[Refusal] = &[
    Refusal {
        status: "400",
        name: "BadRequest",
        words: "The request cannot mean anything, or names no single host",
        happens: |_| true,
    },
    Refusal {
        status: "401",
        name: "Unauthorized",
        words: "The token is missing or wrong",
        happens: needs_token,
    },
    Refusal {
        status: "403",
        name: "Forbidden",
        words: "The role of the token does not suffice, or the request comes from another page",
        happens: |_| true,
    },
    Refusal {
        status: "404",
        name: "NotFound",
        words: "There is no such thing",
        happens: |it| it.path.contains('{') || it.path == "/api/runs",
    },
    Refusal {
        status: "408",
        name: "TooSlow",
        words: "The body did not come in time",
        happens: |it| bodies(it).0.is_some(),
    },
    Refusal {
        status: "409",
        name: "Conflict",
        words: "What is there does not allow it now",
        happens: |it| it.method != "GET" && needs_token(it),
    },
    Refusal {
        status: "413",
        name: "TooLarge",
        words: "The body is longer than it may be",
        happens: |it| bodies(it).0.is_some(),
    },
    Refusal {
        status: "415",
        name: "NotShown",
        words: "It is neither a text nor an image",
        happens: |it| it.path.ends_with("/file") || it.path.ends_with("/output"),
    },
    Refusal {
        status: "421",
        name: "OtherHost",
        words: "This server has another name",
        happens: |_| true,
    },
    Refusal {
        status: "422",
        name: "NoFile",
        words: "It is no file, or longer than is shown",
        happens: |it| it.path.ends_with("/file"),
    },
    Refusal {
        status: "426",
        name: "UpgradeRequired",
        words: "Only a WebSocket is opened here",
        happens: |it| it.path == "/ws",
    },
    Refusal {
        status: "429",
        name: "TooMany",
        words: "Too many wrong tokens came from this address, or too many prompts wait",
        happens: needs_token,
    },
    Refusal {
        status: "503",
        name: "Unavailable",
        words: "The server is stopping, its journal cannot be used, or there are too many clients",
        happens: needs_token,
    },
    Refusal {
        status: "507",
        name: "DiskFull",
        words: "There is no room on the disk",
        happens: |it| it.method != "GET" && needs_token(it),
    },
];

fn needs_token(route: &Route) -> bool {
    route.access != Access::Public
}

fn refusals() -> Map<String, Value> {
    let any = ("Error", "Anything else that went wrong");
    let all = REFUSALS.iter().map(|it| (it.name, it.words)).chain([any]);
    let response = |words| json!({ "description": words, "content": content("Error") });
    all.map(|(name, words)| (name.to_owned(), response(words)))
        .collect()
}

fn content(schema: &str) -> Value {
    let schema = format!("#/components/schemas/{schema}");
    json!({ "application/json": { "schema": { "$ref": schema } } })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParameterPlace {
    Path,
    Query,
}

fn in_path(path: &str) -> impl Iterator<Item = &str> {
    let names = path
        .split('/')
        .filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'));
    names.map(|it| it.trim_start_matches('*'))
}

fn in_query(path: &str) -> &'static [&'static str] {
    match path {
        "/ws" => &["format", "profile", "output", "subscribe", "asks"],
        "/ag-ui" | "/ag-ui/{engine}" => &["profile", "on_disconnect"],
        "/api/sessions" => &["limit", "after", "engine", "text", "state"],
        "/api/sessions/{id}/events" => &["after", "limit", "format", "profile", "output"],
        "/api/sessions/{id}/items/{item}/output" => &["at", "block", "part"],
        "/api/sessions/{id}/file" => &["path"],
        _ => &[],
    }
}

fn parameter(path: &str, name: &str, place: ParameterPlace) -> Value {
    let is_file = path.ends_with("/file") && name == "path";
    let mut parameter = json!({
        "name": name,
        "in": match place {
            ParameterPlace::Path => "path",
            ParameterPlace::Query => "query",
        },
        "required": place == ParameterPlace::Path || is_file,
        "schema": schema(path, name, place),
    });
    if let Some(words) = description(path, name) {
        parameter["description"] = words.into();
    }
    parameter
}

fn schema(path: &str, name: &str, place: ParameterPlace) -> Value {
    match (path, name) {
        (_, "id" | "engine" | "item") if place == ParameterPlace::Path => {
            json!({ "type": "string", "minLength": 1 })
        }
        (_, "n") => json!({ "type": "integer", "minimum": 0, "format": "uint64" }),
        ("/api/sessions", "limit") => {
            json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
        }
        (_, "limit") => json!({ "type": "integer", "minimum": 0, "format": "uint64" }),
        ("/api/sessions", "state") => {
            json!({ "enum": journal::State::ALL.map(journal::State::name) })
        }
        ("/api/sessions/{id}/events", "after") => {
            json!({ "type": "string", "pattern": r"^[0-9]{1,19}(\.[0-9]{1,9})?$" })
        }
        ("/ws", "format") => json!({ "enum": ws::formats() }),
        (_, "format") => {
            let written = registry::FORMATS.iter().filter(|it| it.writer.is_some());
            json!({ "enum": written.map(|it| it.name).collect::<Vec<_>>() })
        }
        ("/ag-ui" | "/ag-ui/{engine}", "profile") => {
            let format = registry::find_writer("ag-ui");
            let profiles = format.map_or(&[][..], |it| it.0.profiles);
            json!({ "enum": profiles.iter().map(|it| it.name).collect::<Vec<_>>() })
        }
        (_, "on_disconnect") => json!({ "enum": ["abort", "detach"] }),
        (_, "output") => json!({ "type": "string", "pattern": "^([0-9]{1,15}|full)$" }),
        (_, "subscribe") => json!({ "enum": ["all", "own", "none"] }),
        (_, "asks") => json!({ "type": "boolean" }),
        (_, "at") => json!({ "type": "integer", "minimum": 0, "format": "uint64" }),
        (_, "block") => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        (_, "part") => json!({ "enum": ["structured"] }),
        (_, "path") => json!({ "type": "string", "minLength": 1 }),
        _ => json!({ "type": "string" }),
    }
}

fn description(path: &str, name: &str) -> Option<&'static str> {
    Some(match (path, name) {
        ("/api/asks/{id}", "id") => "as `GET /api/asks` names it",
        (_, "id") => "linkspan's id of a session, or the agent's",
        (_, "engine") => "as `GET /api/engines` names it",
        (_, "n") => "the number that the prompt was taken with",
        ("/api/sessions", "limit") => "how many at most; 0 is 1, and more than 500 is 500",
        (_, "limit") => "how many events at most",
        ("/api/sessions", "after") => "`next` of the page before",
        (_, "after") => "a cursor: the number of an event, such as `7`, or `7.1`",
        (_, "text") => "words of the title",
        (_, "profile") => "a variant of the format",
        (_, "output") => "how many bytes of a tool's output `thread` holds, or `full`",
        (_, "subscribe") => {
            "`own` sends the events of sessions that the client prompts, `none` none before it has subscribed"
        }
        (_, "asks") => "whether asks and the ends of runs come as messages of the bridge, too",
        (_, "item") => "the id of an item, as its events name it",
        (_, "at") => "the number of the item's last event",
        (_, "block") => "a block of the result, from 0",
        (_, "part") => "what the tool says for programs",
        (_, "on_disconnect") => {
            "what becomes of the run when its client goes; `detach` unless given"
        }
        ("/api/sessions/{id}/file", "path") => "below the session's directory",
        _ => return None,
    })
}

/// What a route answers with.
enum ResponseBody {
    Json(&'static str),
    /// Of one of these kinds.
    Raw(&'static [&'static str]),
    Nothing,
}

/// The schemas of what a route takes and gives.
fn bodies(route: &Route) -> (Option<&'static str>, ResponseBody) {
    match (route.method.as_str(), route.path) {
        ("GET", "/") => (None, ResponseBody::Raw(&["text/html"])),
        ("GET", "/healthz" | "/api/metrics") => (None, ResponseBody::Raw(&["text/plain"])),
        ("GET", "/api/openapi.json") => (None, ResponseBody::Raw(&["application/json"])),
        ("GET", "/api/me") => (None, ResponseBody::Json("Me")),
        ("GET", "/api/engines") => (None, ResponseBody::Json("Engines")),
        ("GET", "/api/sessions") => (None, ResponseBody::Json("Sessions")),
        ("GET", "/api/sessions/{id}") => (None, ResponseBody::Json("SessionDetail")),
        ("GET", "/api/sessions/{id}/file") => (
            None,
            ResponseBody::Raw(&[
                "text/plain",
                "image/png",
                "image/jpeg",
                "image/gif",
                "image/webp",
            ]),
        ),
        ("POST", "/api/sessions/{id}/abort") => (None, ResponseBody::Json("Aborted")),
        ("POST", "/api/runs") => (Some("Prompt"), ResponseBody::Json("Submitted")),
        ("POST", "/ag-ui" | "/ag-ui/{engine}") => (
            Some("RunAgentInput"),
            ResponseBody::Raw(&["text/event-stream", PROTO_TYPE]),
        ),
        ("POST", "/ag-ui/{engine}/abort") => (Some("Thread"), ResponseBody::Json("Aborted")),
        ("GET", "/api/sessions/{id}/items/{item}/output") => (
            None,
            ResponseBody::Raw(&[
                "text/plain",
                "application/json",
                "image/png",
                "image/jpeg",
                "image/gif",
                "image/webp",
            ]),
        ),
        ("GET", "/api/asks") => (None, ResponseBody::Json("Asks")),
        ("POST", "/api/asks/{id}") => (Some("Answer"), ResponseBody::Nothing),
        _ => (None, ResponseBody::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::ag_ui::AbortBody;
    use crate::api::{asks, runs};
    use crate::fields::Fields;

    #[test]
    fn everything_that_is_named_is_there() {
        let document = document();
        let text = document.to_string();
        for kind in ["schemas", "responses"] {
            let start = format!("#/components/{kind}/");
            let names = text.split(&start).skip(1);
            for name in names.map(|it| it.split('"').next().unwrap()) {
                let found = &document["components"][kind][name];
                assert!(found.is_object(), "there is no `{name}` among the {kind}");
            }
        }
    }

    #[test]
    fn every_route_is_described() {
        let document = document();
        let mut ids = HashSet::new();
        for route in ROUTES {
            let path = route.path.replace("{*", "{");
            let operation = &document["paths"][&path][route.method.as_str().to_lowercase()];
            assert_eq!(operation["summary"], route.summary);
            assert_eq!(operation["operationId"], route.id);
            assert!(ids.insert(route.id), "two routes are called `{}`", route.id);
            assert_eq!(
                operation["security"],
                match route.access {
                    Access::Public => json!([]),
                    Access::Role(_) => json!([{ "token": [] }]),
                }
            );
            assert!(operation["responses"]["400"].is_object(), "{path}");
        }
        assert_eq!(document["servers"], json!([{ "url": "/" }]));
    }

    #[test]
    fn a_body_has_the_fields_that_are_read_and_no_others() {
        let document = document();
        let check = |schema: &str, read: &[&'static str], aliases: &[&'static str]| {
            let schema = &document["components"]["schemas"][schema];
            assert_eq!(schema["additionalProperties"], false);
            let properties = schema["properties"].as_object().unwrap();
            let mut described: Vec<&str> = properties.keys().map(String::as_str).collect();
            described.extend(aliases);
            described.sort_unstable();
            let mut read = read.to_vec();
            read.sort_unstable();
            assert_eq!(described, read);
        };
        let aliases = [
            "text",
            "provider",
            "sessionId",
            "session_id",
            "workingDir",
            "cd",
            "allowedTools",
            "allowed_tools",
            "output_style",
            "ask_timeout",
            "ask_default",
        ];
        check("Prompt", &runs::SubmitFields::names(), &aliases);
        check("Answer", &asks::AskReply::names(), &[]);
        check("Thread", &AbortBody::names(), &[]);
    }

    #[test]
    fn parameters_have_types() {
        let document = document();
        let parameters = |path: &str| document["paths"][path]["get"]["parameters"].clone();
        let limit = &parameters("/api/sessions")[0];
        assert_eq!(
            *limit,
            json!({
                "name": "limit", "in": "query", "required": false,
                "description": "how many at most; 0 is 1, and more than 500 is 500",
                "schema": { "type": "integer", "minimum": 0, "maximum": u32::MAX },
            })
        );
        let path = &parameters("/api/sessions/{id}/file")[1];
        assert_eq!(path["required"], true);
        let format = &parameters("/ws")[0]["schema"]["enum"];
        assert_eq!(*format, json!(ws::formats()));
    }
}
