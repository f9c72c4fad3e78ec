//! API tokens.

use reqwest::Method;
use tempmail_tests::Browser;
use tempmail_tests::browser::{button, combobox, containing, dialog, textbox};

use super::{open_section, shown_secret};
use crate::{html_of, service, sign_in_as};

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
