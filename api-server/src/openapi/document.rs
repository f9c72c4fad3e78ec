//! Builds the document.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::callback;
use super::html::list;
use super::operation::{Credential, Operation, Routes, Success};
use crate::http::error::Surface;
use crate::http::error::code::{self, Code};

/// Codes that every operation can fail with, before it does anything.
const MIDDLEWARE_CODES: [Code; 4] = [
    code::PAYLOAD_TOO_LARGE,
    code::UNSUPPORTED_MEDIA_TYPE,
    code::MISDIRECTED_REQUEST,
    code::RATE_LIMIT_EXCEEDED,
];

/// Codes of every operation whose answer is not constant.
const FAILURE_CODES: [Code; 2] = [code::UNAVAILABLE, code::INTERNAL_ERROR];

/// Rules of the whole interface, in CommonMark.
const ABOUT: &str = "\
Disposable mailboxes as a platform: the mailbox API (`/api`), the Pro API (`/pro/api`) and the token API (`/v1`).

- Bodies are JSON objects of at most 65536 bytes. Unknown query parameters and fields are ignored.
- Responses always have every field; a field without a value is `null`. Times are RFC 3339 in UTC with milliseconds.
- Errors are `{\"error\": code}` on `/v1`; elsewhere there is also a `message` that says what to change. \
An unknown path is 404 `not_found`, an unknown method 405 `method_not_allowed` with `Allow`. \
`HEAD` is supported wherever `GET` is.
- Lengths and rates are the defaults; an installation may configure others.";

/// The document of these routes.
pub(crate) fn document<S: Clone + Send + Sync + 'static>(routes: &Routes<S>) -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut schemas = error_schemas();
    let mut shared = BTreeMap::new();
    for (method, path, operation) in routes.operations() {
        paths.entry(path).or_default().insert(method.to_owned(), describe(path, operation, &mut shared));
        for (name, schema) in &operation.schemas {
            let mut schema = schema.clone();
            complete(&mut schema);
            schemas.insert(name.clone(), schema);
        }
    }
    for (name, mut schema) in callback::schemas() {
        complete(&mut schema);
        schemas.insert(name.to_owned(), schema);
    }
    let schemas: BTreeMap<&str, Value> =
        schemas.iter().map(|(name, schema)| (name.as_str(), merged(schema, &schemas))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "tempmail",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": "mailbox", "description": "/api: mailboxes and their messages, by address and password."},
            {"name": "pro", "description": "/pro/api: the resources of a tenant."},
            {"name": "token", "description": "/v1: inboxes by address, without creating a mailbox first."},
            {"name": "document", "description": "This document."},
        ],
        "paths": paths,
        "webhooks": callback::webhooks(),
        "components": {"schemas": schemas, "responses": shared, "securitySchemes": security_schemes()},
    })
}

fn security_schemes() -> Value {
    let bearer = |description: &str| json!({"type": "http", "scheme": "bearer", "description": description});
    json!({
        "mailbox": bearer("A mailbox JWT, from POST /api/accounts or POST /api/token."),
        "pro": bearer("A Pro API token (tm_pro_…), or on /pro/api a session from POST /pro/api/session."),
        "proCookie": {"type": "apiKey", "in": "cookie", "name": "__Host-tempmail", "description": "A session from POST /pro/api/session with `cookie`, for requests of the site's own pages without an Authorization header. On plain-http loopback its name is tempmail."},
        "live": {"type": "apiKey", "in": "header", "name": "x-api-token", "description": "A live API token (tm_live_…), or one that it minted for an address."},
        "liveInQuery": {"type": "apiKey", "in": "query", "name": "token", "description": "A live API token, where a client can't send a header."},
    })
}

/// The two forms of an error.
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

fn describe(path: &str, operation: &Operation, shared: &mut BTreeMap<String, Value>) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [tag(path)],
        "security": security(operation.credential),
        "responses": responses(path, operation, shared),
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
    } else if path.starts_with("/api") || path.starts_with("/document") {
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
        Credential::Pro => json!([{"pro": []}, {"proCookie": []}]),
        Credential::Live => json!([{"live": []}]),
        Credential::LiveInQuery => json!([{"live": []}, {"liveInQuery": []}]),
    }
}

/// An error with one code is described once, in `shared`.
fn responses(path: &str, operation: &Operation, shared: &mut BTreeMap<String, Value>) -> Value {
    let mut responses = Map::new();
    let limit = rate_limit_scope(operation.credential);
    for success in &operation.successes {
        responses.insert(success.status.to_string(), describe_success(success, limit));
    }
    let mut by_status: BTreeMap<StatusCode, BTreeSet<&str>> = BTreeMap::new();
    let failures: &[Code] = if operation.constant { &[] } else { &FAILURE_CODES };
    for (status, code) in operation.errors.iter().chain(&MIDDLEWARE_CODES).chain(failures) {
        by_status.entry(*status).or_default().insert(code);
    }
    for (status, codes) in by_status {
        let mut described = describe_error(path, status, &codes);
        if let [code] = codes.iter().collect::<Vec<_>>()[..] {
            let name = match Surface::of_path(path) {
                Surface::Api => format!("api_{code}"),
                Surface::V1 => format!("v1_{code}"),
            };
            let reference = json!({"$ref": format!("#/components/responses/{name}")});
            shared.insert(name, std::mem::replace(&mut described, reference));
        }
        responses.insert(status.as_u16().to_string(), described);
    }
    Value::Object(responses)
}

/// What requests are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RateLimitScope {
    /// By client; some clients are exempt.
    Client,
    /// By token or mailbox.
    Credential,
}

/// Requests count by their credential, or else by client.
fn rate_limit_scope(credential: Credential) -> RateLimitScope {
    match credential {
        Credential::Mailbox | Credential::Pro | Credential::Live | Credential::LiveInQuery => {
            RateLimitScope::Credential
        }
        Credential::None | Credential::MaybePro => RateLimitScope::Client,
    }
}

fn describe_success(success: &Success, limit: RateLimitScope) -> Value {
    let mut described = json!({"description": success.description});
    if let Some((media_type, schema)) = &success.content {
        described["content"] = json!({*media_type: {"schema": schema}});
    }
    let mut headers = Map::new();
    for (name, description) in &success.headers {
        let header = json!({"description": description, "required": true, "schema": {"type": "string"}});
        headers.insert((*name).to_owned(), header);
    }
    headers.extend(limit_headers(limit == RateLimitScope::Credential));
    if !headers.is_empty() {
        described["headers"] = Value::Object(headers);
    }
    described
}

fn limit_headers(required: bool) -> impl Iterator<Item = (String, Value)> {
    let fields = [
        ("RateLimit", "What remains of the limit (draft-ietf-httpapi-ratelimit-headers)."),
        ("RateLimit-Policy", "The limit."),
    ];
    fields.into_iter().map(move |(name, description)| {
        let header = json!({"description": description, "required": required, "schema": {"type": "string"}});
        (name.to_owned(), header)
    })
}

fn describe_error(path: &str, status: StatusCode, codes: &BTreeSet<&str>) -> Value {
    let form = match Surface::of_path(path) {
        Surface::Api => "ApiError",
        Surface::V1 => "V1Error",
    };
    let listed: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
    let mut headers = Map::new();
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        let after =
            json!({"description": "Seconds.", "required": true, "schema": {"type": "integer", "minimum": 1}});
        headers.insert("Retry-After".to_owned(), after);
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        headers.extend(limit_headers(true));
    }
    if status == StatusCode::UNAUTHORIZED && !codes.contains(code::INVALID_CREDENTIALS.1) {
        let challenge = json!({"description": "The credential to present.", "required": true, "schema": {"type": "string"}});
        headers.insert("WWW-Authenticate".to_owned(), challenge);
    }
    let mut schema = error_schemas().remove(form).unwrap_or_default();
    schema["properties"]["error"]["enum"] = json!(codes);
    let mut described =
        json!({"description": listed.join(", "), "content": {"application/json": {"schema": schema}}});
    if !headers.is_empty() {
        described["headers"] = Value::Object(headers);
    }
    described
}

/// The one object that an `allOf` or `anyOf` of objects describes, in which a field of some is optional. Generators of clients
/// lose what may be null in an `allOf`, and require the fields of all in an `anyOf`.
fn merged(schema: &Value, schemas: &BTreeMap<String, Value>) -> Value {
    let named = schema["$ref"].as_str().and_then(|reference| schemas.get(reference.rsplit('/').next()?));
    if let Some(named) = named {
        return merged(named, schemas);
    }
    let mut object = schema.clone();
    let parts = |key| {
        let parts: Vec<Value> = list(&schema[key])
            .map(|part| merged(part, schemas))
            .filter(|part| part["properties"].is_object())
            .collect();
        (!parts.is_empty()).then_some(parts)
    };
    for part in parts("allOf").into_iter().flatten() {
        add_fields(&mut object, &part);
        let required: Vec<Value> =
            [&object, &part].into_iter().flat_map(|of| list(&of["required"])).cloned().collect();
        object["required"] = json!(required);
    }
    if let Some(choices) = parts("anyOf") {
        choices.iter().for_each(|choice| add_fields(&mut object, choice));
        let in_all =
            |name: &&Value| choices.iter().all(|choice| list(&choice["required"]).any(|of| of == *name));
        let required: Vec<Value> = list(&choices[0]["required"]).filter(in_all).cloned().collect();
        object["required"] = json!(required);
        object["type"] = json!("object");
    }
    if let Some(fields) = object.get_mut("properties").and_then(Value::as_object_mut) {
        for field in fields.values_mut().filter(|field| field.get("anyOf").is_some()) {
            *field = merged(field, schemas);
        }
        object.as_object_mut().map(|keys| (keys.remove("allOf"), keys.remove("anyOf")));
    }
    object
}

/// Adds the properties of a part to an object, and its description and type if the object has none.
fn add_fields(object: &mut Value, part: &Value) {
    for (key, value) in part.as_object().into_iter().flatten() {
        match (&mut object[key.as_str()], value) {
            (Value::Object(fields), Value::Object(further)) => fields.extend(further.clone()),
            (absent @ Value::Null, value) if key != "required" => *absent = value.clone(),
            _ => {}
        }
    }
}

/// Makes one object of an `allOf` whose parts have no name: of a struct with the fields of another one.
fn join_inline(schema: &mut Value) {
    let is_inline = |part: &Value| part["properties"].is_object();
    if !schema["allOf"].as_array().is_some_and(|parts| parts.iter().all(is_inline)) {
        return;
    }
    let parts = schema.as_object_mut().and_then(|object| object.remove("allOf"));
    for part in parts.iter().flat_map(list) {
        add_fields(schema, part);
    }
}

/// Completes a schema of an answer: every field is required (one without a value is `null`), and a text
/// field that is named for a time has the format `date-time`.
fn complete(schema: &mut Value) {
    join_inline(schema);
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(fields) = object.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, field) in fields.iter_mut() {
            complete(field);
            if (name.ends_with("_at") || name == "deadline") && is_text(field) {
                field["format"] = json!("date-time");
            }
        }
        let names: Vec<String> = fields.keys().cloned().collect();
        object.insert("required".to_owned(), json!(names));
    }
    for key in ["items", "allOf", "oneOf", "anyOf"] {
        match object.get_mut(key) {
            Some(Value::Array(schemas)) => schemas.iter_mut().for_each(complete),
            Some(schema) => complete(schema),
            None => {}
        }
    }
}

fn is_text(schema: &Value) -> bool {
    match &schema["type"] {
        Value::Array(types) => types.iter().any(|name| name == "string"),
        name => name == "string",
    }
}
