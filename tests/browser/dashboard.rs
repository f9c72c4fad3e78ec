//! `/dashboard`: signing in and out, and what a tenant manages.

mod mailboxes;
mod webhooks;

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_model::token::TokenKind;
use tempmail_tests::browser::{button, combobox, containing, css, dialog, heading, link, textbox};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Browser, Tenant, TestDns, rows};

use crate::{assert_no_alarm, html_of, kept_by_the_browser, row, service, sign_in_as};

/// Opens a section of the dashboard.
pub(crate) async fn open_section(browser: &Browser, title: &str) {
    browser.click(link(title)).await;
    browser.wait_for(heading(title)).await;
}

/// The secret in the dialog that shows one.
async fn shown_secret(browser: &Browser) -> String {
    browser.wait_for(css("dialog code.secret")).await;
    let script = "return document.querySelector('dialog code.secret').textContent";
    browser.evaluate(script, vec![]).await.as_str().unwrap().to_owned()
}

/// The value of the session's cookie, which scripts can't read; `None` where there is none.
async fn session_cookie(browser: &Browser) -> Option<String> {
    let cookies = browser.cdp("Network.getAllCookies", json!({})).await;
    let cookies = cookies["cookies"].as_array().unwrap();
    let session = cookies.iter().find(|cookie| cookie["name"] == "tempmail")?;
    assert_eq!((&session["httpOnly"], &session["sameSite"]), (&json!(true), &json!("Strict")));
    Some(session["value"].as_str().unwrap().to_owned())
}

/// Asserts that the browser has nothing of a tenant: neither kept nor shown.
async fn assert_nothing_is_left(browser: &Browser, secrets: &[&str]) {
    assert_eq!(session_cookie(browser).await, None);
    let kept = kept_by_the_browser(browser).await.to_string();
    let source = html_of(browser).await;
    for secret in secrets {
        assert!(!kept.contains(secret) && !source.contains(secret), "{secret}: {kept}\n{source}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_token_nowhere_and_leaves_nothing_after_signing_out() {
    let (app, browser) = (service().await, Browser::start().await);
    app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    app.deliver("quay@inbox.localhost", "For the tenant alone", "").await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    browser.wait_for(row("For the tenant alone")).await;
    browser.wait_for_text("harbour").await;
    let cookie = session_cookie(&browser).await.expect("there is a session");
    let kept = kept_by_the_browser(&browser).await.to_string();
    assert!(!kept.contains(&app.tenant.pro) && !kept.contains(&cookie), "{kept}");
    assert!(!html_of(&browser).await.contains(&app.tenant.pro));
    open_section(&browser, "Mailboxes").await;
    browser.wait_for(link("quay@inbox.localhost")).await;
    assert_no_alarm(&browser).await;

    browser.click(button("Sign out")).await;
    browser.wait_for_text("You are signed out. Nothing is left in this browser.").await;
    let secrets = ["quay", "For the tenant alone", "harbour", app.tenant.pro.as_str(), cookie.as_str()];
    assert_nothing_is_left(&browser, &secrets).await;
    // What was ended is refused, whoever has it.
    let request = app.request(Method::GET, "/pro/api/session").bearer(&cookie);
    request.send().await.assert_api_error(440, "session_expired");
    browser.back().await;
    browser.wait_for(heading("Sign in to the dashboard")).await;
    assert_nothing_is_left(&browser, &secrets).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_nothing_when_the_session_is_ended_elsewhere() {
    let (app, browser) = (service().await, Browser::start().await);
    app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    app.deliver("quay@inbox.localhost", "For the tenant alone", "").await;
    let token = app.token(&app.tenant, TokenKind::Pro).await;
    sign_in_as(&browser, &app, &token).await;
    browser.wait_for(row("For the tenant alone")).await;
    rows::revoke_token(&app.pool, &token, app.clock.now()).await;
    browser.wait_for_text("Your session has ended because its token was revoked.").await;
    browser.wait_for(heading("Sign in to the dashboard")).await;
    assert_nothing_is_left(&browser, &["quay", "For the tenant alone", "harbour", token.as_str()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_out_in_every_tab() {
    let (app, browser) = (service().await, Browser::start().await);
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    browser.open_tab(&app.url("/dashboard")).await;
    browser.wait_for(heading("Everything")).await;
    browser.click(button("Sign out")).await;
    browser.wait_for_text("You are signed out.").await;
    browser.switch_to_other_tab().await;
    browser.wait_for(heading("Sign in to the dashboard")).await;
    eventually("the list of the other tab is gone", || async {
        browser.find(css(".section-nav")).await.is_none().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn says_why_a_token_does_not_sign_in() {
    let (app, browser) = (service().await, Browser::start().await);
    browser.open(&app.url("/dashboard")).await;
    let unknown = format!("tm_pro_{:064x}", 7);
    for (token, words) in [
        (app.tenant.live.as_str(), "The dashboard requires a Pro token."),
        ("password", "A Pro token begins with tm_pro_."),
        (unknown.as_str(), "This sign-in is not valid."),
    ] {
        browser.fill(textbox("Pro token"), token).await;
        browser.click(button("Sign in")).await;
        browser.wait_for_text(words).await;
    }
    assert_eq!(session_cookie(&browser).await, None);
    let kept = kept_by_the_browser(&browser).await.to_string();
    assert!(!kept.contains("tm_"), "{kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_what_is_used_of_each_limit() {
    let (app, browser) = (service().await, Browser::start().await);
    app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    open_section(&browser, "Usage").await;
    for words in ["1 of 100", "0 of 10", "0 of 1", "2 of 20"] {
        browser.wait_for_text(words).await;
    }
}

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
async fn two_tenants_side_by_side_share_nothing() {
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

#[tokio::test(flavor = "multi_thread")]
async fn adds_a_domain_shows_its_records_and_verifies_it() {
    let dns = TestDns::start().await;
    dns.domain("ships.test", 2).await;
    let app = App::builder().dns(&dns).browsable().start().await;
    let browser = Browser::start().await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    open_section(&browser, "Domains").await;
    browser.wait_for(heading("No domain yet")).await;
    browser.click(button("Add a domain")).await;
    browser.fill(textbox("Domain"), "com").await;
    browser.click(button("Add a domain")).await;
    browser.wait_for_text("This domain cannot be added.").await;
    browser.fill(textbox("Domain"), "ships.test").await;
    browser.click(button("Add a domain")).await;
    browser.wait_until_gone(dialog("Add a domain")).await;
    browser.wait_for(heading("ships.test")).await;
    browser.wait_for_text("Waiting for DNS").await;
    browser.wait_for(containing(".record-state", "Missing, or it has another value")).await;

    let listed = app.domains(&app.tenant).await;
    let id = listed[0]["id"].as_str().unwrap();
    for (part, key) in [("TXT", "value"), ("TXT", "host"), ("MX", "value"), ("MX", "host")] {
        let records = listed[0]["dns_records"].as_array().unwrap();
        let record = records.iter().find(|record| record["type"] == part).unwrap();
        browser.wait_for(containing(".record code", record[key].as_str().unwrap())).await;
    }
    browser.click(button("Copy: Value of the TXT record")).await;
    browser.wait_for_text("Copied to the clipboard.").await;

    let token = listed[0]["verify_token"].as_str().unwrap();
    dns.set_txt("_tempmail.ships.test", &[&format!("tempmail-verify={token}")]).await;
    app.clock.advance(SignedDuration::from_secs(11));
    browser.click(button("Check the records of ships.test now")).await;
    browser.wait_for(css(".record[data-right=true]")).await;
    browser.wait_for(containing(".record-state", "Missing, or it names another host")).await;
    dns.set_verified("ships.test", token, "mx.inbox.localhost").await;
    app.clock.advance(SignedDuration::from_secs(11));
    browser.click(button("Check the records of ships.test now")).await;
    browser.wait_for(containing(".pill", "Verified")).await;
    assert_eq!(app.domain_state(&app.tenant, id).await.0, "verified");

    browser.click(button("Delete the domain ships.test")).await;
    browser.wait_for(dialog("Delete ships.test?")).await;
    browser.click(button("Delete")).await;
    browser.wait_for(heading("No domain yet")).await;
    assert!(app.domains(&app.tenant).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_token_shows_it_once_and_revokes_it() {
    let (app, browser) = (service().await, Browser::start().await);
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    open_section(&browser, "Tokens").await;
    for (option, name, prefix) in [
        ("Live: reads and deletes mail", "robot", "tm_live_"),
        ("Pro: manages this tenant", "manager", "tm_pro_"),
    ] {
        browser.click(button("New token")).await;
        browser.fill(textbox("Name"), name).await;
        browser.choose(combobox("Kind"), option).await;
        browser.choose(combobox("Expires"), "in 30 days").await;
        browser.click(button("New token")).await;
        browser.wait_for(dialog("The token was created.")).await;
        let token = shown_secret(&browser).await;
        assert!(token.starts_with(prefix), "{token}");
        browser.click(button("I have stored it")).await;
        browser.wait_for(containing(".row", name)).await;
        let source = html_of(&browser).await;
        assert!(!source.contains(&token), "it is shown once");
        let list = || match prefix {
            "tm_live_" => app.request(Method::GET, "/v1/tokens").live(&token),
            _ => app.request(Method::GET, "/pro/api/tokens").bearer(&token),
        };
        assert_eq!(list().send().await.status, 200);

        let (revoke, question) = (format!("Revoke the token {name}"), format!("Revoke “{name}”?"));
        browser.click(button(&revoke)).await;
        browser.wait_for(dialog(&question)).await;
        browser.click(button("Revoke")).await;
        browser.wait_until_gone(dialog(&question)).await;
        browser.wait_until_gone(button(&revoke)).await;
        browser.wait_for(containing(".pill", "Revoked on")).await;
        assert_eq!(list().send().await.error(401), "invalid_token");
    }
}
