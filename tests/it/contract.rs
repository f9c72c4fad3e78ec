//! What the OpenAPI document says, held over every operation that it has. The harness checks
//! each answer against the document (`tests/harness/contract.rs`); what is here provokes the
//! answers that every route has.

mod arbitrary;
mod authentication;
mod body;
mod coverage;
mod database;
mod document;
mod judge;
mod limit;
mod method;
mod parameter;
mod schemathesis;

use reqwest::Method;
use tempmail_model::clock::SystemClock;
use tempmail_model::id::new_id;
use tempmail_tests::contract::Operation;
use tempmail_tests::http::Request;
use tempmail_tests::{App, Tenant};

/// An inbox that has mail: a wait on it answers at once.
const FULL: &str = "full@inbox.localhost";

/// One credential of each kind.
struct Caller {
    mailbox: String,
    pro: String,
    live: String,
}

impl Caller {
    /// The credentials of a tenant, one of a mailbox among them, which has mail then as [`FULL`] has.
    async fn of(app: &App, tenant: &Tenant) -> Self {
        app.deliver(FULL, "there", "").await;
        let address = format!("owned-{}@inbox.localhost", tenant.id);
        let mailbox = app.mailbox(Some(&tenant.pro), &address).await;
        app.deliver(&address, "there", "").await;
        Self { mailbox: mailbox.jwt, pro: tenant.pro.clone(), live: tenant.live.clone() }
    }

    /// The same text as a credential of every kind.
    fn with(text: &str) -> Self {
        Self { mailbox: text.to_owned(), pro: text.to_owned(), live: text.to_owned() }
    }

    /// Presents what an operation asks for.
    fn present(&self, operation: &Operation, request: Request) -> Request {
        match operation.credentials.first().map(String::as_str) {
            Some("mailbox") => request.bearer(&self.mailbox),
            Some("pro") => request.bearer(&self.pro),
            Some("live") => request.live(&self.live),
            Some(other) => panic!("what is the credential {other}?"),
            None => request,
        }
    }
}

/// A request of an operation to a path or URL's tail, without credential and body.
fn bare(app: &App, operation: &Operation, path: &str) -> Request {
    app.request(operation.method.clone(), path)
}

/// A request that an operation would carry out, if there were what its path names.
fn whole(app: &App, operation: &Operation, caller: &Caller, path: &str) -> Request {
    let request = caller.present(operation, bare(app, operation, path));
    match &operation.body {
        Some(body) => request.json(&body.example),
        None => request,
    }
}

/// Whether an operation holds its answer back until there is something to tell.
fn waits(operation: &Operation) -> bool {
    operation.method == Method::GET && operation.answers().any(|(status, _)| status == 204)
}

/// The path of an operation on something that nobody has, with the query that it needs.
fn made_up(operation: &Operation) -> String {
    let path = operation.path_with(|name| match name {
        "id" => new_id(SystemClock::default().local_now()).to_string(),
        "index" => "0".to_owned(),
        "address" if operation.method == Method::GET => FULL.to_owned(),
        "address" => "empty@inbox.localhost".to_owned(),
        "domain" => "nothing.example".to_owned(),
        other => panic!("what is {{{other}}} in {}?", operation.path),
    });
    if operation.id == "streamAddress" { format!("{path}?address={FULL}") } else { path }
}

/// A path with one thing more in its query.
fn asking(path: &str, query: &str) -> String {
    let joint = if path.contains('?') { '&' } else { '?' };
    format!("{path}{joint}{query}")
}
