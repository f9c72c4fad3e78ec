//! `POST /api/accounts` for an address that is held: a free mailbox is made again by whoever had it.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::{App, Fleet, Response};

const ADDRESS: &str = "again@inbox.localhost";
/// That of the harness's mailboxes.
const PASSWORD: &str = "correct horse";

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_mailbox_again_that_its_owner_deleted() {
    let app = App::start().await;
    let former = app.mailbox(None, ADDRESS).await;
    app.deliver(ADDRESS, "before", "").await;
    app.delete_mailbox(&former).await;
    assert_eq!(app.sign_in(ADDRESS, PASSWORD).await.status, 401, "it is gone until it is created again");

    let again = app.mailbox(None, "AGAIN@inbox.localhost").await;
    assert_ne!(again.id, former.id);
    assert!(app.messages(&again).await.is_empty(), "a mailbox starts empty");
    app.deliver(ADDRESS, "after", "").await;
    assert_eq!(app.messages(&again).await[0]["subject"], "after");
    app.get_mailbox(&former, "/api/messages").await.assert_api_error(401, "invalid_token");
    assert_eq!(app.sign_in(ADDRESS, PASSWORD).await.status, 200);
    // The first one deletes its mail, and another one what is left of it.
    for _ in 0..2 {
        app.worker_pass().await;
    }
    assert_eq!(app.messages(&again).await.len(), 1);
    assert_eq!(
        app.count("SELECT count(*) FROM mailbox").await,
        1,
        "what is left of the former one is deleted"
    );
    assert_eq!(app.count("SELECT free FROM mailbox_count").await, 1);

    app.delete_mailbox(&again).await;
    assert_ne!(app.mailbox(None, ADDRESS).await.id, again.id, "as often as its owner wants");
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_an_idle_mailbox_again() {
    let app = App::start().await;
    let former = app.mailbox(None, ADDRESS).await;
    app.advance_hours(31 * 24);
    app.worker_pass().await;
    app.create_mailbox(None, ADDRESS, "another horse").await.assert_api_error(409, "address_taken");
    let again = app.mailbox(None, ADDRESS).await;
    assert_ne!(again.id, former.id);
    app.get_mailbox(&former, "/api/messages").await.assert_api_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_no_mailbox_again_that_was_anybody_elses() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let refused = async |password: &str| {
        let answer = app.create_mailbox(None, ADDRESS, password).await;
        answer.assert_api_error(409, "address_taken");
        answer
    };
    // In use, by its own password.
    let free = app.mailbox(None, ADDRESS).await;
    let in_use = refused(PASSWORD).await;
    app.delete_mailbox(&free).await;
    // Held for its owner, by another password.
    let wrong = refused("another horse").await;
    // A Pro token makes no free mailbox again.
    let pro = app.create_mailbox(Some(&app.tenant.pro), ADDRESS, PASSWORD).await;
    pro.assert_api_error(409, "address_taken");
    // A tenant's, whoever deleted it, and although its tenant is gone.
    let address = "pro@inbox.localhost";
    let by_itself = app.mailbox(Some(&other.pro), address).await;
    app.delete_mailbox(&by_itself).await;
    let of_tenant = app.create_mailbox(None, address, PASSWORD).await;
    app.tempmail("tenant delete lighthouse --yes").await.success();
    let of_nobody = app.create_mailbox(None, address, PASSWORD).await;
    // Removed with its domain, which is then served again.
    app.system_domain("other.localhost", true).await;
    let address = "again@other.localhost";
    app.mailbox(None, address).await;
    app.tempmail("system-domain remove other.localhost --delete-mailboxes").await.success();
    app.tempmail("system-domain add other.localhost").await.success();
    let with_domain = app.create_mailbox(None, address, PASSWORD).await;
    for answer in [&wrong, &of_tenant, &of_nobody, &with_domain] {
        assert_eq!(answer.appearance(), in_use.appearance());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_an_attempt_as_a_sign_in_before_the_password_is_compared() {
    let app = App::builder()
        .config(|config| {
            config.http.unlimited_networks.clear();
            config.limits.sign_in_failures = 3;
        })
        .start()
        .await;
    let limited = |answer: &Response| answer.assert_api_error(429, "rate_limit_exceeded");
    let attempt = async |address: &str, password: &str| app.create_mailbox(None, address, password).await;
    let deleted = app.mailbox(None, ADDRESS).await;
    app.delete_mailbox(&deleted).await;
    let pro = app.mailbox(Some(&app.tenant.pro), "pro@inbox.localhost").await;
    app.delete_mailbox(&pro).await;
    let in_use = app.mailbox(None, "in-use@inbox.localhost").await;
    for address in [ADDRESS, &pro.address, &in_use.address] {
        for _ in 0..3 {
            attempt(address, "another horse").await.assert_api_error(409, "address_taken");
        }
        limited(&attempt(address, PASSWORD).await);
    }
    limited(&app.sign_in(&in_use.address, PASSWORD).await);
    // A right password gives its attempt back.
    for _ in 0..5 {
        let mailbox = app.mailbox(None, "right@inbox.localhost").await;
        app.delete_mailbox(&mailbox).await;
    }
}

/// Whatever has the address, one password is compared.
#[tokio::test(flavor = "multi_thread")]
async fn hashes_once_whatever_has_the_address() {
    let fleet = Fleet::builder().apis(1).ingests(0).workers(0).start().await;
    let create = async |address: &str, password: &str| {
        let body = json!({ "address": address, "password": password });
        fleet.request(0, Method::POST, "/api/accounts").json(&body).send().await.status
    };
    let hashes = async || fleet.api(0).metric("tempmail_password_hashes_total").await;
    let pro = fleet.mailbox(Some(&fleet.tenant.pro), "pro@inbox.localhost").await;
    let free = fleet.mailbox(None, ADDRESS).await;
    fleet.mailbox(None, "in-use@inbox.localhost").await;
    for mailbox in [&pro, &free] {
        let deleted = fleet.request(0, Method::DELETE, "/api/me").bearer(&mailbox.jwt).send().await;
        assert_eq!(deleted.status, 204);
    }
    for (address, password, status) in [
        ("in-use@inbox.localhost", PASSWORD, 409),
        ("pro@inbox.localhost", PASSWORD, 409),
        (ADDRESS, "another horse", 409),
        (ADDRESS, PASSWORD, 201),
        ("new@inbox.localhost", PASSWORD, 201),
    ] {
        let before = hashes().await;
        assert_eq!(create(address, password).await, status, "{address}");
        let compared = hashes().await - before;
        assert!((compared - 1.0).abs() < f64::EPSILON, "{address}: {compared}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_no_password_beyond_the_hold() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, ADDRESS).await;
    app.delete_mailbox(&mailbox).await;
    app.advance_hours(31 * 24 + 1);
    app.worker_pass().await;
    let hashes = "SELECT count(*) FROM mailbox WHERE removed_at IS NOT NULL AND password_hash <> '!'";
    assert_eq!(app.count(hashes).await, 0, "also where there is mail to delete first");
    app.worker_pass().await;
    assert_eq!(app.count("SELECT count(*) FROM mailbox").await, 0);
    let another = app.create_mailbox(None, ADDRESS, "another horse").await;
    assert_eq!(another.status, 201, "the address is anybody's again");
    let former = app.mailbox(None, "former@inbox.localhost").await;
    app.delete_mailbox(&former).await;
    app.mailbox(None, "former@inbox.localhost").await;
    assert_eq!(app.count(hashes).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_it_once_under_concurrent_requests_and_within_the_limit() {
    let app = App::builder().config(|config| config.limits.free_mailboxes = 2).start().await;
    let mailbox = app.mailbox(None, ADDRESS).await;
    app.delete_mailbox(&mailbox).await;
    let attempts = (0..8).map(|_| app.create_mailbox(None, ADDRESS, PASSWORD));
    let answers = futures_util::future::join_all(attempts).await;
    let created: Vec<&Response> = answers.iter().filter(|answer| answer.status == 201).collect();
    assert_eq!(created.len(), 1);
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        answer.assert_api_error(409, "address_taken");
    }
    let jwt = created[0].json()["token"].as_str().unwrap().to_owned();
    assert_eq!(app.request(Method::DELETE, "/api/me").bearer(&jwt).send().await.status, 204);
    for other in ["one@inbox.localhost", "two@inbox.localhost"] {
        app.mailbox(None, other).await;
    }
    app.create_mailbox(None, ADDRESS, PASSWORD).await.assert_api_error(403, "account_limit_reached");
    sqlx::query("UPDATE mailbox_count SET free = 0").execute(&app.pool).await.unwrap();
    assert_eq!(app.create_mailbox(None, ADDRESS, PASSWORD).await.status, 201, "the hold is still its own");
}
