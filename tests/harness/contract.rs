//! Holds every answer that a test receives against the OpenAPI document: its status, its code,
//! the headers that are promised, and each field of its body. What was seen is recorded, so that
//! a whole run can tell what was promised and never seen.

mod operation;
mod schema;
mod seen;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex, PoisonError};

use reqwest::header::HeaderMap;
use reqwest::{Method, Url};

pub use operation::{Body, Operation, Parameter, Place};
pub use seen::{NOTHING, Seen, recorded};

use crate::http::Answer;
use operation::Described;

/// The codes that are answered before anybody looks for a route.
const BEFORE_ROUTES: [(u16, &str); 3] =
    [(413, "payload_too_large"), (415, "unsupported_media_type"), (429, "rate_limit_exceeded")];

/// Every operation of the document, by path and method.
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

/// The methods that a path has, `HEAD` among them where it has `GET`; none where the document
/// does not have the path.
pub fn methods(path: &str) -> BTreeSet<String> {
    let here = operations().iter().filter(|operation| operation.is_at(path));
    let mut methods: BTreeSet<String> = here.map(|operation| operation.method.to_string()).collect();
    if methods.contains("GET") {
        methods.insert("HEAD".to_owned());
    }
    methods
}

/// Servers whose answers are checked.
static SERVERS: Mutex<BTreeSet<SocketAddr>> = Mutex::new(BTreeSet::new());

/// Checks the answers of the HTTP interface at `address` from now on, until this is dropped.
#[derive(Debug)]
pub struct Checked(SocketAddr);

impl Checked {
    /// From now on.
    pub fn new(address: SocketAddr) -> Self {
        SERVERS.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
        Self(address)
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        SERVERS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// Checks an answer, if it came from a server of ours.
///
/// # Panics
/// It is not what the document says.
pub(crate) fn check(method: &Method, url: &Url, request: &HeaderMap, answer: &Answer) {
    let from = url.host_str().zip(url.port_or_known_default()).map(|(host, port)| format!("{host}:{port}"));
    let Some(from) = from.and_then(|from| from.parse().ok()) else { return };
    if !SERVERS.lock().unwrap_or_else(PoisonError::into_inner).contains(&from) {
        return;
    }
    if let Err(why) = judge(method, url.path(), request, answer) {
        panic!("{method} {} is not as documented: {why}\n{answer:?}\n{}", url.path(), answer.text());
    }
}

/// Whether an answer to such a request is what the document says.
///
/// # Errors
/// What is not.
pub fn judge(method: &Method, path: &str, request: &HeaderMap, answer: &Answer) -> Result<(), String> {
    let is_head = method == Method::HEAD;
    let asked = if is_head { &Method::GET } else { method };
    let found = operations().iter().find(|operation| operation.method == *asked && operation.is_at(path));
    match found {
        Some(operation) if is_head => operation.judge_head(answer),
        Some(operation) => {
            let code = operation.judge(answer)?;
            seen::record(operation.id.as_str(), answer.status, &code);
            Ok(())
        }
        None if is_preflight(method, request) && answer.status == 204 => Ok(()),
        None => judge_elsewhere(path, answer, is_head),
    }
}

/// What is no operation is 404 or 405, in the form of its surface.
fn judge_elsewhere(path: &str, answer: &Answer, is_head: bool) -> Result<(), String> {
    let methods = methods(path);
    let expected = if methods.is_empty() { (404, "not_found") } else { (405, "method_not_allowed") };
    let mut allowed = vec![expected];
    allowed.extend(BEFORE_ROUTES);
    let Some((status, code)) = allowed.into_iter().find(|(status, _)| *status == answer.status) else {
        return Err(format!("no operation is here, so {} {} is expected", expected.0, expected.1));
    };
    if status == 405 {
        let allow: BTreeSet<String> =
            answer.header("allow").split(',').map(|method| method.trim().to_owned()).collect();
        if allow != methods {
            return Err(format!("Allow is to list {methods:?}"));
        }
    }
    if is_head {
        return Ok(());
    }
    Described::of_error(path, code).judge(answer).map(drop)
}

fn is_preflight(method: &Method, request: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && request.contains_key("origin")
        && request.contains_key("access-control-request-method")
}
