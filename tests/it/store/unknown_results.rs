//! A result of a database function that this version does not know: the request is deferred with 451 or 503,
//! and no mail is refused for good.

use reqwest::Method;
use serde_json::json;
use sqlx::{AssertSqlSafe, Executor as _};
use tempmail_tests::{App, SmtpClient, send_mail, smtp};

/// Makes a function answer what no version answered yet.
async fn replace(app: &App, function: &str, word: &str, other: &str) {
    let definition: String =
        sqlx::query_scalar("SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = $1")
            .bind(function)
            .fetch_one(&app.pool)
            .await
            .unwrap();
    assert!(definition.contains(word), "{function} says {word}");
    app.pool.execute(AssertSqlSafe(definition.replace(word, other))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn defers_a_mail_with_an_unknown_result() {
    let app = App::start().await;
    replace(
        &app,
        "accept_mail",
        "THEN 0 ELSE 1 END)::smallint AS result",
        "THEN 7 ELSE 7 END)::smallint AS result",
    )
    .await;
    let message = smtp::message("a@client.example", "deferred", "");
    let reply = send_mail(app.smtp(), "a@client.example", "any@inbox.localhost", &message).await;
    assert_eq!(reply.status(), "451 4.3.0");
    // Also in a batch with others, and for each of several recipients.
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let reply =
        client.transact("a@client.example", &["a@inbox.localhost", "b@inbox.localhost"], &message).await;
    assert_eq!(reply.status(), "451 4.3.0");
    assert_eq!(app.count("SELECT count(*) FROM message").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_503_for_an_unknown_answer_of_a_function() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.test").await;
    let pro = app.tenant.pro.clone();
    let body = json!({"address": "new@inbox.localhost", "password": "pass123"});
    let domain_path = format!("/pro/api/domains/{domain}");
    for (function, word, method, path, body) in [
        ("create_mailbox", "'created'", Method::POST, "/api/accounts", Some(body)),
        ("create_token", "'created'", Method::POST, "/pro/api/tokens", Some(json!({"name": "x"}))),
        (
            "create_webhook",
            "'created'",
            Method::POST,
            "/pro/api/webhooks",
            Some(json!({"url": "https://hooks.example/", "events": ["email.received"]})),
        ),
        (
            "create_custom_domain",
            "'created'",
            Method::POST,
            "/pro/api/domains",
            Some(json!({"domain": "x.test"})),
        ),
        ("remove_custom_domain", "'removed'", Method::DELETE, domain_path.as_str(), None),
    ] {
        replace(&app, function, word, "'unheard_of'").await;
        let mut request = app.request(method, path).bearer(&pro);
        if let Some(body) = &body {
            request = request.json(body);
        }
        request.send().await.assert_api_error(503, "unavailable");
    }
}
