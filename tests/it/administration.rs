//! `tempmail tenant`, `token` and `system-domain`: the real program over the database of a
//! running installation. `tempmail migrate`, which makes that database.

mod audit;
mod check;
mod database;
pub(crate) mod key_rotation;
mod next_schema;
mod schema;
mod system_domain;
mod tenant;
mod tenant_deletion;
mod token;
mod up;

use serde_json::Value;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, SmtpClient};

/// The keys of an object, sorted.
fn keys(object: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = object.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Waits until RCPT gives this answer: it may remember a yes for 5 s.
async fn is_answered(app: &App, recipient: &str, expected: &str) {
    eventually(&format!("{recipient} is answered {expected}"), || async {
        let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
        client.expect_positive("MAIL FROM:<a@client.example>").await;
        let reply = client.command(&format!("RCPT TO:<{recipient}>")).await;
        (reply.status() == expected).then_some(())
    })
    .await;
}

/// Lets the worker work until a statement counts so many: a purge that another pass has claimed is
/// left to that one.
async fn worker_leaves(app: &App, statement: &'static str, expected: i64) {
    eventually(&format!("{statement} counts {expected}"), || async {
        app.worker_pass().await;
        (app.count(statement).await == expected).then_some(())
    })
    .await;
}
