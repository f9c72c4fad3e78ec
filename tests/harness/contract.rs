//! Validates every response that a test receives against the OpenAPI document: status, error code, required
//! headers, and each field of the body. What was seen is recorded, so that a whole run can report documented
//! responses that no test has seen.

mod operation;
mod schema;
mod seen;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex, PoisonError};

use reqwest::header::HeaderMap;
use reqwest::{Method, Url};

pub use operation::{Operation, Parameter, ParameterLocation, RequestBody};
pub use seen::{NO_CODE, SeenResponse, recorded};

use crate::http::Response;
use operation::DocumentedResponse;

/// Errors that are returned before a request is routed.
const BEFORE_ROUTING: [(u16, &str); 4] = [
    (413, "payload_too_large"),
    (415, "unsupported_media_type"),
    (421, "misdirected_request"),
    (429, "rate_limit_exceeded"),
];

/// Every operation of the document.
pub fn operations() -> &'static [Operation] {
    static OPERATIONS: LazyLock<Vec<Operation>> =
        LazyLock::new(|| operation::read(&tempmail_api_server::openapi_document()));
    &OPERATIONS
}

/// The operation of this id.
///
/// # Panics
/// There is none.
pub fn operation(id: &str) -> &'static Operation {
    let found = operations().iter().find(|operation| operation.id == id);
    found.unwrap_or_else(|| panic!("the document has no operation {id}"))
}

/// The methods of a path, including `HEAD` if it has `GET`; empty for an undocumented path.
pub fn methods(path: &str) -> BTreeSet<String> {
    let mut methods: BTreeSet<String> =
        operations_at(path).map(|operation| operation.method.to_string()).collect();
    if methods.contains("GET") {
        methods.insert("HEAD".to_owned());
    }
    methods
}

/// The operations of a path. One without parameters takes precedence, as it does in the router.
fn operations_at(path: &str) -> impl Iterator<Item = &'static Operation> {
    let is_exact = operations().iter().any(|operation| operation.path == path);
    operations()
        .iter()
        .filter(move |operation| if is_exact { operation.path == path } else { operation.matches_path(path) })
}

/// Servers whose responses are validated.
static SERVERS: Mutex<BTreeSet<SocketAddr>> = Mutex::new(BTreeSet::new());

/// While this lives, responses of the HTTP listener at its address are validated.
#[derive(Debug)]
pub struct ValidatedServer(SocketAddr);

impl ValidatedServer {
    /// Starts the validation.
    pub fn new(address: SocketAddr) -> Self {
        SERVERS.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
        Self(address)
    }
}

impl Drop for ValidatedServer {
    fn drop(&mut self) {
        SERVERS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// Validates a response if it is of a [`ValidatedServer`].
///
/// # Panics
/// It is not as documented.
pub(crate) fn check(method: &Method, url: &Url, request: &HeaderMap, response: &Response) {
    let from = url.host_str().zip(url.port_or_known_default()).map(|(host, port)| format!("{host}:{port}"));
    let Some(from) = from.and_then(|from| from.parse().ok()) else { return };
    if !SERVERS.lock().unwrap_or_else(PoisonError::into_inner).contains(&from) {
        return;
    }
    if let Err(why) = validate(method, url.path(), request, response) {
        panic!("{method} {} is not as documented: {why}\n{response:?}\n{}", url.path(), response.text());
    }
}

/// Validates a response to a request of this method, path and header fields.
///
/// # Errors
/// What is not as documented.
pub fn validate(method: &Method, path: &str, request: &HeaderMap, response: &Response) -> Result<(), String> {
    let is_head = method == Method::HEAD;
    let documented_method = if is_head { &Method::GET } else { method };
    let found = operations_at(path).find(|operation| operation.method == *documented_method);
    match found {
        Some(operation) if is_head => operation.validate_head(response),
        Some(operation) => {
            let code = operation.validate(response)?;
            seen::record(operation.id.as_str(), response.status, &code);
            Ok(())
        }
        None if is_preflight(method, request) && response.status == 204 => Ok(()),
        None if is_page(path) && matches!(response.status, 200 | 304 | 405) => Ok(()),
        None => validate_unrouted(path, response, is_head),
    }
}

/// Whether a path is one of the web page, which is no part of the document.
fn is_page(path: &str) -> bool {
    path == "/" || path == "/dashboard" || path.starts_with("/page/")
}

/// A request that no operation matches is answered with 404 or 405, in the error format of the surface.
fn validate_unrouted(path: &str, response: &Response, is_head: bool) -> Result<(), String> {
    let methods = methods(path);
    let expected = if methods.is_empty() { (404, "not_found") } else { (405, "method_not_allowed") };
    let mut allowed = vec![expected];
    allowed.extend(BEFORE_ROUTING);
    let Some((status, code)) = allowed.into_iter().find(|(status, _)| *status == response.status) else {
        return Err(format!("there is no operation, so {} {} is expected", expected.0, expected.1));
    };
    if status == 405 {
        let allow: BTreeSet<String> =
            response.header("allow").split(',').map(|method| method.trim().to_owned()).collect();
        if allow != methods {
            return Err(format!("Allow must list {methods:?}"));
        }
    }
    if is_head {
        return Ok(());
    }
    DocumentedResponse::of_error(path, code).validate(response).map(drop)
}

fn is_preflight(method: &Method, request: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && request.contains_key("origin")
        && request.contains_key("access-control-request-method")
}
