//! Validates every response that a test receives against the OpenAPI document: status, error code, required
//! headers, and each field of the body. What was seen is recorded, so that a whole run can report documented
//! responses that no test has seen.

mod operation;

use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use operation::DocumentedResponse;
use reqwest::header::HeaderMap;
use reqwest::{Method, Url};

use crate::http::Response;

pub use operation::{Operation, Parameter, ParameterLocation, RequestBody};

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
            record(operation.id.as_str(), response.status, &code);
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

/// Stands for the code of a response that is not an error.
pub const NO_CODE: &str = "-";

/// Operation, status and code of a response.
pub type SeenResponse = (String, u16, String);

struct SeenLog {
    file: File,
    recorded: BTreeSet<SeenResponse>,
}

/// Records a response once.
fn record(operation: &str, status: u16, code: &str) {
    static LOG: LazyLock<Option<Mutex<SeenLog>>> = LazyLock::new(|| {
        let directory = directory()?;
        fs::create_dir_all(&directory).expect("the directory of CONTRACT_SEEN can be created");
        let path = directory.join(std::process::id().to_string());
        let file = File::options().create(true).append(true).open(path);
        Some(Mutex::new(SeenLog {
            file: file.expect("a file in CONTRACT_SEEN can be written"),
            recorded: BTreeSet::new(),
        }))
    });
    let Some(record) = &*LOG else { return };
    let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
    if record.recorded.insert((operation.to_owned(), status, code.to_owned())) {
        writeln!(record.file, "{operation} {status} {code}").expect("a file in CONTRACT_SEEN can be written");
    }
}

/// Everything that any process recorded; `None` without the variable.
///
/// # Panics
/// The files cannot be read.
pub fn recorded() -> Option<BTreeSet<SeenResponse>> {
    let directory = directory()?;
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(directory).expect("CONTRACT_SEEN is a directory") {
        let text = fs::read_to_string(entry.expect("it can be read").path()).expect("a record is text");
        seen.extend(text.lines().map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [operation, status, code] = words[..] else { panic!("`{line}` is not a record") };
            (operation.to_owned(), status.parse().expect("a status is a number"), code.to_owned())
        }));
    }
    Some(seen)
}

fn directory() -> Option<PathBuf> {
    std::env::var_os("CONTRACT_SEEN").filter(|value| !value.is_empty()).map(PathBuf::from)
}
