//! What the OpenAPI document promises, for every operation. The harness validates each response against the document
//! (`tests/harness/contract.rs`); these tests provoke the responses that all operations share.

mod arbitrary;
mod authentication;
mod body;
mod coverage;
mod database;
mod document;
mod host;
mod limit;
mod method;
mod parameter;
mod schemathesis;
mod validation;

use reqwest::Method;
use tempmail_model::clock::SystemClock;
use tempmail_model::id::new_id;
use tempmail_tests::contract::Operation;
use tempmail_tests::http::Request;
use tempmail_tests::{App, Tenant};

/// An inbox with mail: a long-poll returns at once.
const FULL: &str = "full@inbox.localhost";

/// One credential of each kind.
struct Credentials {
    mailbox: String,
    pro: String,
    live: String,
}

impl Credentials {
    /// Credentials of a tenant. Its new mailbox has mail, as [`FULL`] has.
    async fn create(app: &App, tenant: &Tenant) -> Self {
        app.deliver(FULL, "there", "").await;
        let address = format!("owned-{}@inbox.localhost", tenant.id);
        let mailbox = app.mailbox(Some(&tenant.pro), &address).await;
        app.deliver(&address, "there", "").await;
        Self { mailbox: mailbox.jwt, pro: tenant.pro.clone(), live: tenant.live.clone() }
    }

    /// The same text for every kind of credential.
    fn all(text: &str) -> Self {
        Self { mailbox: text.to_owned(), pro: text.to_owned(), live: text.to_owned() }
    }

    /// Adds the credential of an operation to a request.
    fn present(&self, operation: &Operation, request: Request) -> Request {
        match operation.credentials.first().map(String::as_str) {
            Some("mailbox") => request.bearer(&self.mailbox),
            Some("pro") => request.bearer(&self.pro),
            Some("live") => request.live(&self.live),
            Some(other) => panic!("unknown security scheme {other}"),
            None => request,
        }
    }
}

/// A request of an operation to a path, without credential and body.
fn bare_request(app: &App, operation: &Operation, path: &str) -> Request {
    app.request(operation.method.clone(), path)
}

/// A request of an operation with its credential, and parameters that name nothing.
fn authorized_request(app: &App, operation: &Operation, credentials: &Credentials) -> Request {
    credentials.present(operation, bare_request(app, operation, &unknown_path(operation)))
}

/// A request of an operation with its credential and example body.
fn full_request(app: &App, operation: &Operation, credentials: &Credentials, path: &str) -> Request {
    let request = credentials.present(operation, bare_request(app, operation, path));
    match operation.bodies.first() {
        Some(body) => request.json(&body.example),
        None => request,
    }
}

/// Whether an operation waits for mail.
fn is_long_poll(operation: &Operation) -> bool {
    operation.responses().any(|(status, _)| status == 200)
        && operation.responses().any(|(status, _)| status == 204)
}

/// The path of an operation with parameters that name nothing, and its required query.
fn unknown_path(operation: &Operation) -> String {
    let path = operation.path_with(|name| match name {
        "id" => new_id(SystemClock::default().local_now()).to_string(),
        "index" => "0".to_owned(),
        "address" if operation.method == Method::GET => FULL.to_owned(),
        "address" => "empty@inbox.localhost".to_owned(),
        "domain" => "nothing.example".to_owned(),
        other => panic!("unknown parameter {{{other}}} of {}", operation.path),
    });
    if operation.id == "streamAddress" { format!("{path}?address={FULL}") } else { path }
}

/// A path with a further query parameter.
fn with_query(path: &str, query: &str) -> String {
    let joint = if path.contains('?') { '&' } else { '?' };
    format!("{path}{joint}{query}")
}
