//! The OpenAPI document, made from the table of routes: what is served is described.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value, json};

use crate::error::reply;
use crate::routes::{Access, ROUTES, Route};

/// What bodies look like, written by hand.
const SCHEMAS: &str = include_str!("openapi/schemas.json");

pub(crate) async fn show() -> Response {
    reply(StatusCode::OK, &document())
}

fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = route.path.replace("{*", "{");
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[route.method.as_str().to_lowercase()] = operation(route);
    }
    let schemas: Value = serde_json::from_str(SCHEMAS).unwrap_or_default();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "linkspan serve",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0 OR MIT" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "summary": route.summary,
        "responses": {
            "default": {
                "description": "Anything that went wrong",
                "content": content("Error"),
            },
        },
    });
    if let Access::Role(role) = route.access {
        operation["security"] = json!([{ "token": [] }]);
        operation["x-role"] = role.name().into();
    }
    let mut parameters: Vec<Value> = in_path(route.path)
        .map(|it| parameter(it, "path"))
        .collect();
    parameters.extend(in_query(route.path).iter().map(|it| parameter(it, "query")));
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
        Some(schema) => json!({ "description": words, "content": content(schema) }),
        None => json!({ "description": words }),
    };
    operation
}

fn content(schema: &str) -> Value {
    let schema = format!("#/components/schemas/{schema}");
    json!({ "application/json": { "schema": { "$ref": schema } } })
}

fn in_path(path: &str) -> impl Iterator<Item = &str> {
    let names = path
        .split('/')
        .filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'));
    names.map(|it| it.trim_start_matches('*'))
}

fn parameter(name: &str, place: &str) -> Value {
    json!({
        "name": name, "in": place, "required": place == "path",
        "schema": { "type": "string" },
    })
}

fn in_query(path: &str) -> &'static [&'static str] {
    match path {
        "/ws" => &["format", "profile"],
        "/ag-ui" | "/ag-ui/{engine}" => &["profile", "on_disconnect"],
        "/api/sessions" => &["limit", "after", "engine", "text", "state"],
        "/api/sessions/{id}/events" => &["after", "limit", "format", "profile"],
        "/api/sessions/{id}/file" => &["path"],
        _ => &[],
    }
}

/// The schemas of what a route takes and gives.
fn bodies(route: &Route) -> (Option<&'static str>, Option<&'static str>) {
    match (route.method.as_str(), route.path) {
        ("GET", "/api/engines") => (None, Some("Engines")),
        ("GET", "/api/sessions") => (None, Some("Sessions")),
        ("GET", "/api/sessions/{id}") => (None, Some("SessionDetail")),
        ("POST", "/api/sessions/{id}/abort") => (None, Some("Aborted")),
        ("POST", "/api/runs") => (Some("Prompt"), Some("Submitted")),
        ("POST", "/ag-ui" | "/ag-ui/{engine}") => (Some("RunAgentInput"), None),
        ("POST", "/ag-ui/{engine}/abort") => (Some("Thread"), Some("Aborted")),
        ("GET", "/api/asks") => (None, Some("Asks")),
        ("POST", "/api/asks/{id}") => (Some("Answer"), None),
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_that_is_named_is_there() {
        let document = document();
        let text = document.to_string();
        let names = text.split("#/components/schemas/").skip(1);
        for name in names.map(|it| it.split('"').next().unwrap()) {
            let schema = &document["components"]["schemas"][name];
            assert!(schema.is_object(), "there is no schema `{name}`");
        }
    }

    #[test]
    fn every_route_is_described() {
        let document = document();
        for route in ROUTES {
            let path = route.path.replace("{*", "{");
            let operation = &document["paths"][&path][route.method.as_str().to_lowercase()];
            assert_eq!(operation["summary"], route.summary);
        }
    }
}
