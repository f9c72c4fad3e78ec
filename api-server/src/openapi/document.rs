//! The whole document.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::operation::{Credential, Operation, Success};
use super::routes::Routes;
use crate::error::Surface;
use crate::error::code::{self, Code};

/// Codes that every operation can fail with.
const ALWAYS: [Code; 4] =
    [code::PAYLOAD_TOO_LARGE, code::UNSUPPORTED_MEDIA_TYPE, code::UNAVAILABLE, code::INTERNAL_ERROR];

/// The document of these routes.
pub(crate) fn document(routes: &Routes) -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut schemas = error_schemas();
    for (method, path, operation) in routes.operations() {
        paths.entry(path).or_default().insert(method.to_owned(), describe(path, operation));
        for (name, schema) in &operation.schemas {
            let mut schema = schema.clone();
            require_everything(&mut schema);
            schemas.insert(name.clone(), schema);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "tempmail",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Disposable mailboxes as a platform: the mailbox API (/api), the Pro API (/pro/api) \
                            and the token API (/v1).",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": "mailbox", "description": "/api: mailboxes and their messages, for whoever has address and password."},
            {"name": "pro", "description": "/pro/api: what a tenant manages."},
            {"name": "token", "description": "/v1: inboxes by address; nothing is created first."},
            {"name": "document", "description": "This document."},
        ],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": security_schemes()},
    })
}

fn security_schemes() -> Value {
    let bearer = |description: &str| json!({"type": "http", "scheme": "bearer", "description": description});
    json!({
        "mailbox": bearer("A mailbox JWT, from POST /api/accounts or POST /api/token."),
        "pro": bearer("A Pro API token (tm_pro_…), or on /pro/api a session from POST /pro/api/session."),
        "live": {"type": "apiKey", "in": "header", "name": "x-api-token", "description": "A live API token (tm_live_…)."},
    })
}

/// The two forms of an error answer.
fn error_schemas() -> BTreeMap<String, Value> {
    let error = json!({"type": "string", "description": "The published code."});
    let message = json!({"type": "string", "description": "One sentence that says what to change."});
    BTreeMap::from([
        (
            "ApiError".to_owned(),
            json!({"type": "object", "required": ["error", "message"], "properties": {"error": error, "message": message}}),
        ),
        (
            "V1Error".to_owned(),
            json!({"type": "object", "required": ["error"], "properties": {"error": error}}),
        ),
    ])
}

fn describe(path: &str, operation: &Operation) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [tag(path)],
        "security": security(operation.credential),
        "responses": responses(path, operation),
    });
    if !operation.description.is_empty() {
        described["description"] = json!(operation.description);
    }
    if !operation.parameters.is_empty() {
        described["parameters"] = json!(operation.parameters);
    }
    if let Some(schema) = &operation.body {
        described["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    described
}

fn tag(path: &str) -> &'static str {
    if path.starts_with("/pro/api") {
        "pro"
    } else if path.starts_with("/api") {
        "mailbox"
    } else if path.starts_with("/v1") {
        "token"
    } else {
        "document"
    }
}

fn security(credential: Credential) -> Value {
    match credential {
        Credential::None => json!([]),
        Credential::Mailbox => json!([{"mailbox": []}]),
        Credential::MaybePro => json!([{}, {"pro": []}]),
        Credential::Pro => json!([{"pro": []}]),
        Credential::Live => json!([{"live": []}]),
    }
}

fn responses(path: &str, operation: &Operation) -> Value {
    let mut responses = Map::new();
    let limited = is_limited(path, operation.credential);
    for success in &operation.successes {
        responses.insert(success.status.to_string(), describe_success(success, limited));
    }
    let mut by_status: BTreeMap<StatusCode, BTreeSet<&str>> = BTreeMap::new();
    let limit = limited.then_some(code::RATE_LIMIT_EXCEEDED);
    for (status, code) in operation.errors.iter().copied().chain(ALWAYS).chain(limit) {
        by_status.entry(status).or_default().insert(code);
    }
    for (status, codes) in by_status {
        responses.insert(status.as_u16().to_string(), describe_error(path, status, &codes));
    }
    Value::Object(responses)
}

/// Whether the surface counts the operation's requests: `/v1` and `/pro/api` by token, the
/// rest of the interface by client.
fn is_limited(path: &str, credential: Credential) -> bool {
    Surface::of(path) == Surface::Api || credential != Credential::None
}

fn describe_success(success: &Success, limited: bool) -> Value {
    let mut described = json!({"description": success.description});
    if let Some((media_type, schema)) = &success.content {
        described["content"] = json!({*media_type: {"schema": schema}});
    }
    let mut headers = Map::new();
    for (name, description) in &success.headers {
        headers.insert((*name).to_owned(), json!({"description": description, "schema": {"type": "string"}}));
    }
    if limited {
        for (name, description) in [
            ("RateLimit", "What is left of the limit (draft-ietf-httpapi-ratelimit-headers)."),
            ("RateLimit-Policy", "The limit."),
        ] {
            let header = json!({"description": description, "schema": {"type": "string"}});
            headers.insert(name.to_owned(), header);
        }
    }
    if !headers.is_empty() {
        described["headers"] = Value::Object(headers);
    }
    described
}

fn describe_error(path: &str, status: StatusCode, codes: &BTreeSet<&str>) -> Value {
    let form = match Surface::of(path) {
        Surface::Api => "ApiError",
        Surface::V1 => "V1Error",
    };
    let listed: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
    let mut described = json!({
        "description": listed.join(", "),
        "content": {"application/json": {"schema": {
            "allOf": [{"$ref": format!("#/components/schemas/{form}")}],
            "properties": {"error": {"enum": codes}},
        }}},
    });
    let header = match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            Some(("Retry-After", json!({"type": "integer", "minimum": 1})))
        }
        StatusCode::UNAUTHORIZED if !codes.contains("invalid_credentials") => {
            Some(("WWW-Authenticate", json!({"type": "string"})))
        }
        _ => None,
    };
    if let Some((name, schema)) = header {
        described["headers"] = json!({name: {"required": true, "schema": schema}});
    }
    described
}

/// Answers have every field always; one without a value is `null`.
fn require_everything(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(require_everything);
        let names: Vec<String> = properties.keys().cloned().collect();
        object.insert("required".to_owned(), json!(names));
    }
    for key in ["items", "allOf", "oneOf"] {
        match object.get_mut(key) {
            Some(Value::Array(schemas)) => schemas.iter_mut().for_each(require_everything),
            Some(schema) => require_everything(schema),
            None => {}
        }
    }
}
