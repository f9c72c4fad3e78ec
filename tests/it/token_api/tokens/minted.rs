//! Minted tokens: `POST /v1/tokens` with an address.

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_model::token::TokenKind;
use tempmail_tests::http::{percent, split_by_rate_limit};
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{App, CommandOutput, EventStream, Response, rows};

use crate::pro_api::id_of;
use crate::token_api::subjects;

const ADDRESS: &str = "ship@inbox.localhost";
const INBOX: &str = "/v1/inbox/ship@inbox.localhost";

async fn mint(app: &App, live: &str, body: Value) -> Response {
    app.request(Method::POST, "/v1/tokens").live(live).json(&body).send().await
}

async fn delete_as(app: &App, live: &str, path: &str) -> Response {
    app.request(Method::DELETE, path).live(live).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn mints_a_token_for_an_address_in_its_normal_form() {
    let app = App::start().await;
    let now = app.clock.now();
    for (body, name, seconds) in [
        (json!({ "address": "Ship@INBOX.localhost." }), ADDRESS, 600),
        (json!({ "address": ADDRESS, "expires_in_seconds": 3600, "kind": "live" }), ADDRESS, 3600),
        (json!({ "address": ADDRESS, "name": "test 7", "expires_in_seconds": 1.0 }), "test 7", 1),
        (json!({ "address": ADDRESS, "name": null, "expires_in_seconds": null }), ADDRESS, 600),
    ] {
        let minted = mint(&app, &app.tenant.live, body).await.expect(201);
        let token = minted["token"].as_str().unwrap();
        assert!(token.starts_with("tm_live_") && token.len() == 72);
        let expires: Timestamp = minted["expires_at"].as_str().unwrap().parse().unwrap();
        let lasts = expires.duration_since(now);
        assert!(
            (SignedDuration::ZERO..SignedDuration::from_mins(5))
                .contains(&(lasts - SignedDuration::from_secs(seconds))),
            "{lasts}"
        );
        let expected = json!({
            "id": id_of(&minted),
            "name": name,
            "kind": "live",
            "hint": token[token.len() - 4..],
            "created_at": minted["created_at"],
            "last_used_at": null,
            "expires_at": minted["expires_at"],
            "revoked_at": null,
            "surfaces": [],
            "token": token,
            "address": ADDRESS,
            "since": minted["since"],
        });
        assert_eq!(minted, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_reads_and_deletes_at_its_address() {
    let app = App::start().await;
    app.deliver(ADDRESS, "old", "").await;
    let minted = app.mint(&app.tenant.live, ADDRESS).await;
    let (token, since) = (&minted.token, &minted.since);
    app.deliver(ADDRESS, "new", "text").await;

    let found = app.get_as(token, &format!("{INBOX}?since={since}")).await.expect(200);
    assert_eq!(subjects(&found["emails"]), ["new"], "its cursor is of the moment at which it was minted");
    let all = app.get_as(token, INBOX).await.expect(200);
    assert_eq!(subjects(&all["emails"]), ["new", "old"]);
    let stream =
        app.request(Method::GET, &format!("/v1/sse/addr?address={ADDRESS}&since={since}&token={token}"));
    let event = EventStream::open(stream).await.next().await;
    assert!(event.data.contains("new"), "{}", event.data);

    let id = |index: usize| all["emails"][index]["id"].as_str().unwrap().to_owned();
    let read = app.get_as(token, &format!("/v1/email/{}", id(0))).await.expect(200);
    assert_eq!(read["text_body"].as_str().unwrap().trim_end(), "text");
    assert_eq!(app.get_as(token, &format!("/v1/email/{}/raw", id(0))).await.status, 200);
    assert_eq!(delete_as(&app, token, &format!("/v1/email/{}", id(1))).await.status, 204);
    assert_eq!(subjects(&app.get_as(token, INBOX).await.expect(200)["emails"]), ["new"]);
    assert_eq!(delete_as(&app, token, INBOX).await.status, 204);
    app.assert_inbox_is_empty(ADDRESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn is_minted_for_an_address_that_its_parent_may_read_now() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let domain = app.custom_domain(&app.tenant, "ours.example").await;
    app.mailbox(Some(&app.tenant.pro), "mine@inbox.localhost").await;
    app.mailbox(Some(&other.pro), "theirs@inbox.localhost").await;
    app.mailbox(None, "free@inbox.localhost").await;
    let mint_for = async |address: &str| mint(&app, &app.tenant.live, json!({ "address": address })).await;
    for readable in ["mine@inbox.localhost", "mine+tag@inbox.localhost", "any@ours.example", ADDRESS] {
        assert_eq!(mint_for(readable).await.status, 201, "{readable}");
    }
    app.end_verification(domain).await;
    for unreadable in [
        "any@ours.example",
        "theirs@inbox.localhost",
        "theirs+tag@inbox.localhost",
        "free@inbox.localhost",
        "admin@inbox.localhost",
        "postmaster@inbox.localhost",
        "any@elsewhere.example",
        "a@[192.0.2.1]",
        "\"a b\"@inbox.localhost",
    ] {
        mint_for(unreadable).await.assert_v1_error(404, "not_found");
    }
    assert_eq!(
        mint(&app, &app.platform_token().await, json!({ "address": "postmaster@inbox.localhost" }))
            .await
            .status,
        201
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn loses_an_address_that_another_tenant_gets() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let token = app.mint(&app.tenant.live, ADDRESS).await.token;
    let wait = app.start_minted_long_poll(&token, INBOX).await;
    app.mailbox(Some(&other.pro), ADDRESS).await;
    app.deliver(ADDRESS, "theirs", "").await;
    within_deadline("the wait ends", wait).await.unwrap().assert_v1_error(404, "not_found");
    app.get_as(&token, INBOX).await.assert_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_beside_its_parent_and_other_minted_tokens() {
    let app = App::start().await;
    let mut waits = Vec::new();
    for number in 0..10 {
        let token = app.mint(&app.tenant.live, ADDRESS).await.token;
        waits.push(app.start_minted_long_poll(&token, INBOX).await);
        if number == 0 {
            app.get_as(&token, INBOX).await.assert_v1_error(429, "token_busy");
        }
    }
    // An address has ten waits of a tenant.
    let eleventh = app.mint(&app.tenant.live, ADDRESS).await.token;
    app.get_as(&eleventh, INBOX).await.assert_v1_error(429, "addr_busy");
    app.get(INBOX).await.assert_v1_error(429, "addr_busy");
    waits.push(app.start_long_poll(&app.tenant.live, "/v1/inbox/boat@inbox.localhost").await);
    app.deliver(ADDRESS, "hit", "").await;
    app.deliver("boat@inbox.localhost", "hit", "").await;
    for wait in waits {
        assert_eq!(wait.await.unwrap().status, 200);
    }
}

/// A minted token for another address takes no place of that address.
#[tokio::test(flavor = "multi_thread")]
async fn answers_404_for_a_busy_address_that_it_is_not_for() {
    let app = App::start().await;
    let mut waits = Vec::new();
    for _ in 0..10 {
        let token = app.token(&app.tenant, TokenKind::Live).await;
        waits.push(app.start_long_poll(&token, INBOX).await);
    }
    let elsewhere = app.mint(&app.tenant.live, "boat@inbox.localhost").await.token;
    app.get_as(&elsewhere, INBOX).await.assert_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn expires_and_is_removed() {
    let app = App::start().await;
    app.deliver(ADDRESS, "there", "").await;
    let token = app.mint(&app.tenant.live, ADDRESS).await.token;
    let wait = app
        .start_minted_long_poll(
            &app.mint(&app.tenant.live, "boat@inbox.localhost").await.token,
            "/v1/inbox/boat@inbox.localhost",
        )
        .await;
    app.clock.advance(SignedDuration::from_mins(5));
    assert_eq!(app.get_as(&token, INBOX).await.status, 200);
    app.clock.advance(SignedDuration::from_mins(10));
    app.get_as(&token, INBOX).await.assert_v1_error(440, "session_expired");
    within_deadline("the wait ends", wait).await.unwrap().assert_v1_error(440, "session_expired");
    let kept = app.mint(&app.tenant.live, ADDRESS).await.token;
    app.worker_pass().await;
    app.get_as(&token, INBOX).await.assert_v1_error(401, "invalid_token");
    assert_eq!(app.get_as(&kept, INBOX).await.status, 200);
    assert_eq!(app.count("SELECT count(*) FROM minted_token").await, 1);
}

/// Open waits end, too, whatever ends a live token: `realtime::revocation`.
#[tokio::test(flavor = "multi_thread")]
async fn ends_with_its_parent() {
    let app = App::start().await;
    app.deliver(ADDRESS, "there", "").await;
    let now = app.clock.now();
    for (end, status, code) in [
        ("revoke", 401, "invalid_token"),
        ("expire", 440, "session_expired"),
        ("delete", 401, "invalid_token"),
    ] {
        let parent = app.token(&app.tenant, TokenKind::Live).await;
        let minted = app.mint(&parent, ADDRESS).await.token;
        assert_eq!(app.get_as(&minted, INBOX).await.status, 200);
        match end {
            "revoke" => rows::revoke_token(&app.pool, &parent, now).await,
            "expire" => rows::expire_token(&app.pool, &parent, now).await,
            _ => rows::delete_token(&app.pool, &parent).await,
        }
        app.get_as(&minted, INBOX).await.assert_v1_error(status, code);
    }
    let minted = app.mint(&app.tenant.live, ADDRESS).await.token;
    rows::suspend_tenant(&app.pool, app.tenant.id).await;
    app.get_as(&minted, INBOX).await.assert_v1_error(403, "account_disabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn is_revoked_by_its_id_and_not_by_itself() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.deliver(ADDRESS, "there", "").await;
    let minted = app.mint(&app.tenant.live, ADDRESS).await;
    let path = format!("/v1/tokens/{}", minted.id);
    for token in [&minted.token, &other.live] {
        delete_as(&app, token, &path).await.assert_v1_error(404, "not_found");
    }
    assert_eq!(app.get_as(&minted.token, INBOX).await.status, 200);
    let waiting = app.mint(&app.tenant.live, "boat@inbox.localhost").await;
    let wait = app.start_minted_long_poll(&waiting.token, "/v1/inbox/boat@inbox.localhost").await;
    for id in [minted.id, waiting.id] {
        assert_eq!(app.delete(&format!("/v1/tokens/{id}")).await.status, 204);
    }
    app.get_as(&minted.token, INBOX).await.assert_v1_error(401, "invalid_token");
    within_deadline("the wait ends", wait).await.unwrap().assert_v1_error(401, "invalid_token");
    app.delete(&path).await.assert_v1_error(404, "not_found");
    // So does a Pro token of the tenant.
    let id = app.mint(&app.tenant.live, ADDRESS).await.id;
    let revoked = app.request(Method::DELETE, &format!("/pro/api/tokens/{id}")).bearer(&app.tenant.pro);
    assert_eq!(revoked.send().await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn is_in_no_list_and_counts_to_no_limit_of_tokens() {
    let app = App::start().await;
    rows::set_limit(&app.pool, app.tenant.id, rows::TenantLimit::Tokens, 3).await;
    for _ in 0..5 {
        app.mint(&app.tenant.live, ADDRESS).await;
    }
    assert_eq!(app.get("/v1/tokens").await.expect(200)["tokens"].as_array().unwrap().len(), 1);
    let pro = app.request(Method::GET, "/pro/api/tokens").bearer(&app.tenant.pro).send().await.expect(200);
    assert_eq!(pro["tokens"].as_array().unwrap().len(), 2);
    assert_eq!(mint(&app, &app.tenant.live, json!({ "name": "third" })).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn enforces_its_own_limit_under_concurrent_requests() {
    let app = App::builder().config(|config| config.limits.minted_tokens = 3).start().await;
    let other = app.another_tenant("lighthouse").await;
    let requests = (0..12).map(|_| mint(&app, &app.tenant.live, json!({ "address": ADDRESS })));
    let answers = join_all(requests).await;
    let minted: Vec<&Response> = answers.iter().filter(|answer| answer.status == 201).collect();
    assert_eq!(minted.len(), 3);
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        refused.assert_v1_error(403, "token_limit_reached");
    }
    assert_eq!(mint(&app, &other.live, json!({ "address": ADDRESS })).await.status, 201, "another tenant");
    let path = format!("/v1/tokens/{}", id_of(&minted[0].json()));
    assert_eq!(app.delete(&path).await.status, 204);
    app.mint(&app.tenant.live, ADDRESS).await;
    mint(&app, &app.tenant.live, json!({ "address": ADDRESS }))
        .await
        .assert_v1_error(403, "token_limit_reached");
    // Expired ones do not count, nor those whose parent ended.
    app.clock.advance(SignedDuration::from_mins(11));
    let parent = app.token(&app.tenant, TokenKind::Live).await;
    for _ in 0..3 {
        app.mint(&parent, ADDRESS).await;
    }
    rows::revoke_token(&app.pool, &parent, app.clock.now()).await;
    app.mint(&app.tenant.live, ADDRESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_the_rate_of_each_and_of_all_of_a_tenant() {
    let app = App::builder()
        .config(|config| {
            config.limits.v1_per_second = 20;
            config.limits.minted_per_second = 30;
        })
        .start()
        .await;
    let other = app.another_tenant("lighthouse").await;
    let tokens: Vec<String> = join_all((0..10).map(|_| app.mint(&app.tenant.live, ADDRESS)))
        .await
        .into_iter()
        .map(|minted| minted.token)
        .collect();
    let of_other = app.mint(&other.live, ADDRESS).await.token;
    let unknown = format!("/v1/email/{}", tempmail_model::id::new_id(Timestamp::UNIX_EPOCH));
    // Each is below its own rate.
    let answers = join_all((0..150).map(|n| app.get_as(&tokens[n % 10], &unknown))).await;
    let (_, limited) = split_by_rate_limit(&answers);
    for answer in limited {
        assert!(answer.header("ratelimit-policy").starts_with("\"minted_tokens\";q=30"), "{answer:?}");
    }
    assert_eq!(app.get_as(&of_other, &unknown).await.status, 410);
    assert_eq!(app.get_as(&app.token(&app.tenant, TokenKind::Live).await, &unknown).await.status, 410);
    let answers = join_all((0..100).map(|_| app.get_as(&of_other, &unknown))).await;
    split_by_rate_limit(&answers);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_ends_meanwhile_mints_nothing() {
    let app = App::start().await;
    let unknown = json!({ "address": ADDRESS });
    let parent = app.token(&app.tenant, TokenKind::Live).await;
    rows::revoke_token(&app.pool, &parent, app.clock.now()).await;
    mint(&app, &parent, unknown).await.assert_v1_error(401, "invalid_token");
    let pro = app.request(Method::POST, "/pro/api/tokens").bearer(&app.tenant.pro);
    let refused = pro.json(&json!({ "name": "n", "address": ADDRESS })).send().await;
    refused.assert_api_error(400, "invalid_request");
    assert!(refused.json()["message"].as_str().unwrap().contains("/v1/tokens"), "{}", refused.text());
    assert_eq!(app.count("SELECT count(*) FROM minted_token").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn is_audited_by_ids_alone() {
    let app = App::start().await;
    let minted = app.mint(&app.tenant.live, ADDRESS).await;
    let revoked = app.mint(&app.tenant.live, ADDRESS).await;
    assert_eq!(app.delete(&format!("/v1/tokens/{}", revoked.id)).await.status, 204);
    let entries: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT a.actor, a.action, a.subject FROM audit a WHERE a.kind = 'token' AND a.actor LIKE 'token %' ORDER BY a.id",
    )
    .fetch_all(&app.pool)
    .await
    .unwrap();
    let parent: uuid::Uuid =
        sqlx::query_scalar("SELECT parent FROM minted_token LIMIT 1").fetch_one(&app.pool).await.unwrap();
    let entry = |action: &str, id: uuid::Uuid| (format!("token {parent}"), action.to_owned(), id.to_string());
    assert_eq!(
        entries,
        [entry("created", minted.id), entry("created", revoked.id), entry("revoked", revoked.id)]
    );
    app.clock.advance(SignedDuration::from_mins(11));
    app.worker_pass().await;
    assert_eq!(
        app.count("SELECT count(*) FROM audit WHERE kind = 'token' AND actor LIKE 'token %'").await,
        3
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn is_void_after_a_restore() {
    let app = App::start().await;
    app.deliver(ADDRESS, "there", "").await;
    let token = app.mint(&app.tenant.live, ADDRESS).await.token;
    let owner = app.database().url();
    let restored = CommandOutput::run(&["database", "restored"], &[("TEMPMAIL_POSTGRES__URL", &owner)]).await;
    assert!(restored.success().contains("all minted tokens ended"), "{}", restored.stdout);
    app.get_as(&token, INBOX).await.assert_v1_error(401, "invalid_token");
    let token = app.mint(&app.tenant.live, ADDRESS).await.token;
    // 503 until the process knows of the generation that began.
    eventually("the inbox is read with a new one", || async {
        (app.get_as(&token, INBOX).await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_a_tag_and_the_inbox_of_its_mailbox_apart() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    app.deliver("ship+tag@inbox.localhost", "tagged", "").await;
    app.deliver(ADDRESS, "plain", "").await;
    let (whole, tag) = (
        app.mint(&app.tenant.live, ADDRESS).await.token,
        app.mint(&app.tenant.live, "ship+tag@inbox.localhost").await.token,
    );
    let of_tag = format!("/v1/inbox/{}", percent("ship+tag@inbox.localhost"));
    let all = app.get_as(&whole, INBOX).await.expect(200);
    assert_eq!(subjects(&all["emails"]), ["plain", "tagged"]);
    assert_eq!(subjects(&app.get_as(&tag, &of_tag).await.expect(200)["emails"]), ["tagged"]);
    app.get_as(&whole, &of_tag).await.assert_v1_error(404, "not_found");
    app.get_as(&tag, INBOX).await.assert_v1_error(404, "not_found");
    let path = |index: usize| format!("/v1/email/{}", all["emails"][index]["id"].as_str().unwrap());
    for (token, index, status) in [(&whole, 0, 200), (&whole, 1, 200), (&tag, 0, 404), (&tag, 1, 200)] {
        assert_eq!(app.get_as(token, &path(index)).await.status, status, "{index}");
    }
}
