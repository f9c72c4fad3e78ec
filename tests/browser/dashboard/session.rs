//! Signing in and out.

use reqwest::Method;
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_model::token::TokenKind;
use tempmail_tests::browser::{button, css, heading, link, textbox};
use tempmail_tests::wait::eventually;
use tempmail_tests::{Browser, rows};

use super::open_section;
use crate::{assert_no_alarm, html_of, kept_by_the_browser, row, service, sign_in_as};

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
