//! Two tenants side by side, a browser each.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::browser::{button, heading, link};
use tempmail_tests::{App, Browser, Tenant};

use super::open_section;
use crate::{html_of, row, service, sign_in_as};

const SECTIONS: [&str; 6] = ["Everything", "Mailboxes", "Domains", "Webhooks", "Tokens", "Usage"];

/// Gives a tenant one of each; all names have `name` in them.
async fn furnish(app: &App, tenant: &Tenant, name: &str) {
    app.mailbox(Some(&tenant.pro), &format!("{name}@inbox.localhost")).await;
    app.custom_domain(tenant, &format!("{name}.example")).await;
    let webhook = json!({ "url": format!("https://{name}-hooks.example/"), "events": ["email.received"] });
    let created =
        [("/pro/api/webhooks", webhook), ("/pro/api/tokens", json!({ "name": format!("{name}-robot") }))];
    for (path, body) in created {
        let request = app.request(Method::POST, path).bearer(&tenant.pro);
        assert_eq!(request.json(&body).send().await.status, 201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn share_nothing() {
    let app = service().await;
    let other = app.another_tenant("lighthouse").await;
    furnish(&app, &app.tenant, "quay").await;
    furnish(&app, &other, "lamp").await;
    let (ours, theirs) = (Browser::start().await, Browser::start().await);
    sign_in_as(&ours, &app, &app.tenant.pro).await;
    sign_in_as(&theirs, &app, &other.pro).await;
    app.deliver("quay@inbox.localhost", "A quay letter", "").await;
    app.deliver("lamp@inbox.localhost", "A lamp letter", "").await;
    app.deliver("any@quay.example", "Another quay letter", "").await;
    app.deliver("any@lamp.example", "Another lamp letter", "").await;
    for (browser, own, foreign) in [(&ours, "quay", "lamp"), (&theirs, "lamp", "quay")] {
        for subject in ["A {} letter", "Another {} letter"] {
            browser.wait_for(row(&subject.replace("{}", own))).await;
        }
        for section in SECTIONS {
            open_section(browser, section).await;
            if section != "Usage" {
                browser.wait_for_text(own).await;
            }
            let source = html_of(browser).await;
            assert!(!source.contains(foreign), "{section} of {own} has {foreign}");
        }
    }
    // One signs out, and the other stays.
    ours.click(button("Sign out")).await;
    ours.wait_for(heading("Sign in to the dashboard")).await;
    open_section(&theirs, "Mailboxes").await;
    theirs.wait_for(link("lamp@inbox.localhost")).await;
    theirs.reload().await;
    theirs.wait_for(link("lamp@inbox.localhost")).await;
}
