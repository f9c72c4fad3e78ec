//! Expiry: each rule that the interface states in hours or days. Tests move the clock of business time.

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, SmtpClient};

/// Distance from the expiry on either side, since the clock runs during the test.
const MARGIN: SignedDuration = SignedDuration::from_mins(5);

/// Calls `before` shortly before `period` has passed, and `then` shortly after.
async fn before_and_after<A: Future<Output = ()>, B: Future<Output = ()>>(
    app: &App,
    period: SignedDuration,
    before: impl FnOnce() -> A,
    then: impl FnOnce() -> B,
) {
    app.clock.advance(period - MARGIN);
    before().await;
    app.clock.advance(MARGIN + MARGIN);
    then().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_mail_without_a_tenant_for_1_hour() {
    let app = App::start().await;
    let free = app.mailbox(None, "free@inbox.localhost").await;
    app.deliver(&free.address, "mine", "").await;
    app.deliver("shared@inbox.localhost", "shared", "").await;
    let id = |email: &serde_json::Value| email["id"].as_str().unwrap().to_owned();
    let mine = format!("/api/messages/{}", id(&app.messages(&free).await[0]));
    let shared = format!("/v1/email/{}", id(&app.emails("shared@inbox.localhost").await[0]));
    let before = async || {
        assert_eq!(app.get_mailbox(&free, &mine).await.status, 200);
        assert_eq!(app.get(&shared).await.status, 200);
        assert_eq!(app.emails("shared@inbox.localhost").await.len(), 1);
    };
    let then = async || {
        app.get_mailbox(&free, &mine).await.assert_api_error(410, "email_expired");
        app.get(&shared).await.assert_v1_error(410, "email_expired");
        assert!(app.messages(&free).await.is_empty());
        assert_eq!(app.get_mailbox(&free, "/api/me").await.expect(200)["used"], 0);
        app.assert_inbox_is_empty("shared@inbox.localhost").await;
    };
    before_and_after(&app, SignedDuration::from_hours(1), before, then).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_mail_of_a_pro_tenant_for_72_hours() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ships.example").await;
    let pro = app.mailbox(Some(&app.tenant.pro), "pro@inbox.localhost").await;
    app.deliver(&pro.address, "in the mailbox", "").await;
    app.deliver("any@ships.example", "in the domain", "").await;
    let before = async || {
        assert_eq!(app.messages(&pro).await.len(), 1);
        assert_eq!(app.emails(&pro.address).await.len(), 1);
        assert_eq!(app.emails("any@ships.example").await.len(), 1);
    };
    let then = async || {
        assert!(app.messages(&pro).await.is_empty());
        assert_eq!(app.get_mailbox(&pro, "/api/me").await.expect(200)["used"], 0);
        app.assert_inbox_is_empty(&pro.address).await;
        app.assert_inbox_is_empty("any@ships.example").await;
    };
    before_and_after(&app, SignedDuration::from_hours(72), before, then).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_mailbox_jwt_for_7_days() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let before = async || assert_eq!(app.get_mailbox(&mailbox, "/api/me").await.status, 200);
    let then = async || {
        app.get_mailbox(&mailbox, "/api/me").await.assert_api_error(401, "invalid_token");
        let renewed = app.sign_in(&mailbox.address, &mailbox.password).await.expect(200);
        let jwt = renewed["token"].as_str().unwrap();
        assert_eq!(app.request(Method::GET, "/api/me").bearer(jwt).send().await.status, 200);
    };
    before_and_after(&app, SignedDuration::from_hours(7 * 24), before, then).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_pro_session_for_12_hours() {
    let app = App::start().await;
    let request = app.request(Method::POST, "/pro/api/session").json(&json!({ "token": app.tenant.pro }));
    let answer = request.send().await.expect(200);
    let session = answer["token"].as_str().unwrap();
    let list = || app.request(Method::GET, "/pro/api/accounts").bearer(session).send();
    let before = async || assert_eq!(list().await.status, 200);
    let then = async || list().await.assert_api_error(440, "session_expired");
    before_and_after(&app, SignedDuration::from_hours(12), before, then).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_an_api_token_until_it_expires() {
    let app = App::start().await;
    let create = async |kind: &str| {
        let body = json!({ "name": "robot", "kind": kind, "expires_in_days": 3 });
        let request = app.request(Method::POST, "/pro/api/tokens").bearer(&app.tenant.pro).json(&body);
        request.send().await.expect(201)["token"].as_str().unwrap().to_owned()
    };
    let (pro, live) = (create("pro").await, create("live").await);
    let list_pro = || app.request(Method::GET, "/pro/api/tokens").bearer(&pro).send();
    let list_live = || app.get_as(&live, "/v1/tokens");
    let before = async || {
        assert_eq!(list_pro().await.status, 200);
        assert_eq!(list_live().await.status, 200);
    };
    let then = async || {
        list_pro().await.assert_api_error(440, "session_expired");
        list_live().await.assert_v1_error(440, "session_expired");
    };
    before_and_after(&app, SignedDuration::from_hours(3 * 24), before, then).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reserves_the_address_of_a_removed_mailbox_for_31_days() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "held@inbox.localhost").await;
    app.delete_mailbox(&mailbox).await;
    let before = async || {
        app.worker_pass().await;
        let again = app.create_mailbox(None, "held@inbox.localhost", "pass123").await;
        again.assert_api_error(409, "address_taken");
        app.get("/v1/inbox/held@inbox.localhost").await.assert_v1_error(404, "not_found");
        wait_until_rejected(&app, "held@inbox.localhost").await;
    };
    let then = async || {
        app.deliver("held@inbox.localhost", "a shared inbox again", "").await;
        assert_eq!(app.emails("held@inbox.localhost").await.len(), 1);
        assert_eq!(app.create_mailbox(None, "held@inbox.localhost", "pass123").await.status, 201);
    };
    before_and_after(&app, SignedDuration::from_hours(31 * 24), before, then).await;
}

/// RCPT may use an acceptance that was cached for 5 s.
async fn wait_until_rejected(app: &App, address: &str) {
    eventually("the address is rejected", || async {
        (rcpt(app, address).await == "550 5.1.1").then_some(())
    })
    .await;
}

async fn rcpt(app: &App, address: &str) -> String {
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    client.command(&format!("RCPT TO:<{address}>")).await.status()
}

#[tokio::test(flavor = "multi_thread")]
async fn removes_a_free_mailbox_after_30_days_without_use() {
    let app = App::start().await;
    let idle = app.mailbox(None, "idle@inbox.localhost").await;
    let signed_in = app.mailbox(None, "signed-in@inbox.localhost").await;
    let read = app.mailbox(None, "read@inbox.localhost").await;
    let pro = app.mailbox(Some(&app.tenant.pro), "pro@inbox.localhost").await;
    app.advance_hours(6 * 24);
    assert_eq!(app.sign_in(&signed_in.address, &signed_in.password).await.status, 200);
    assert_eq!(app.get_mailbox(&read, "/api/messages").await.status, 200);
    eventually("both uses are recorded", || async {
        let recorded = app.count("SELECT count(*) FROM mailbox WHERE seen_at > created_at").await;
        (recorded == 2).then_some(())
    })
    .await;
    let before = async || {
        app.worker_pass().await;
        assert_eq!(rcpt(&app, &idle.address).await, "250 2.1.5", "29 days and some hours");
    };
    let then = async || {
        app.worker_pass().await;
        wait_until_rejected(&app, &idle.address).await;
        app.sign_in(&idle.address, &idle.password).await.assert_api_error(401, "invalid_credentials");
        let again = app.create_mailbox(None, &idle.address, "pass123").await;
        again.assert_api_error(409, "address_taken");
        for kept in [&signed_in, &read, &pro] {
            assert_eq!(app.sign_in(&kept.address, &kept.password).await.status, 200, "{}", kept.address);
        }
    };
    before_and_after(&app, SignedDuration::from_hours(24 * 24), before, then).await;
}
