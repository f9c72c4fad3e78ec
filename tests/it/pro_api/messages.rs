//! `/pro/api/messages`: everything that a tenant owns.

mod delete;
mod events;
mod get;
mod message;

use reqwest::Method;
use serde_json::Value;
use tempmail_tests::{App, Tenant};

const PATH: &str = "/pro/api/messages";

/// Two tenants with mail in a mailbox and under a custom domain each, and a shared inbox and a free mailbox with mail.
struct Owners {
    app: App,
    other: Tenant,
}

impl Owners {
    async fn create() -> Self {
        let app = App::start().await;
        let other = app.another_tenant("lighthouse").await;
        for (tenant, name) in [(&app.tenant, "quay"), (&other, "lamp")] {
            app.mailbox(Some(&tenant.pro), &format!("{name}@inbox.localhost")).await;
            app.custom_domain(tenant, &format!("{name}.example")).await;
            app.deliver(&format!("{name}+tag@inbox.localhost"), &format!("{name} mailbox"), "x").await;
            app.deliver(&format!("any@{name}.example"), &format!("{name} domain"), "x").await;
        }
        app.mailbox(None, "free@inbox.localhost").await;
        app.deliver("free@inbox.localhost", "free", "x").await;
        app.deliver("shared@inbox.localhost", "shared", "x").await;
        Self { app, other }
    }

    /// What is listed for a Pro token, newest first.
    async fn list(&self, pro: &str) -> Vec<Value> {
        let answer = self.app.request(Method::GET, PATH).bearer(pro).send().await.expect(200);
        assert_eq!(answer["page"], 1);
        answer["messages"].as_array().unwrap().clone()
    }
}

fn subjects(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["subject"].as_str().unwrap()).collect()
}

fn id(message: &Value) -> &str {
    message["id"].as_str().unwrap()
}
