//! Requests that nobody may make: a client has a budget of them, and no request with a valid credential pays for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use tempmail_runtime::config::Config;
use tempmail_tests::metrics::sum;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, Response};
use uuid::Uuid;

/// A well-formed live token that nobody has.
fn unknown_token() -> String {
    format!("tm_live_{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// One `api` process. Clients are those that `X-Forwarded-For` names.
async fn fleet(change: impl FnOnce(&mut Config)) -> Fleet {
    let fleet = Fleet::builder().apis(1).ingests(0).workers(0).config(|config| {
        config.http.unlimited_networks.clear();
        config.http.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        change(config);
    });
    fleet.start().await
}

async fn get(fleet: &Fleet, client: &str, live: Option<&str>) -> Response {
    let request = fleet.request(0, Method::GET, "/v1/domains").header("x-forwarded-for", client);
    match live {
        Some(live) => request.live(live).send().await,
        None => request.send().await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_refused_requests_of_a_client() {
    let fleet = fleet(|config| config.limits.refused_per_minute = 5).await;
    for live in [None, Some("nonsense"), Some(unknown_token().as_str()), Some(fleet.tenant.pro.as_str())] {
        let refused = eventually("the client's requests are used up", || async {
            let answer = get(&fleet, "203.0.113.1", live).await;
            (answer.status != 401).then_some(answer)
        });
        let refused = refused.await;
        refused.assert_v1_error(429, "rate_limit_exceeded");
        assert!(refused.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds >= 1));
    }
    assert_eq!(get(&fleet, "203.0.113.2", None).await.status, 401, "another client has its own");
    let metrics = fleet.api(0).metrics().await;
    assert!(
        sum(&metrics, "tempmail_http_refused_total{code=\"rate_limit_exceeded\",reason=\"refused\"}") > 0.0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_refused_requests_of_the_networks_of_an_ipv6_client() {
    let fleet = fleet(|config| config.limits.refused_per_minute = 1).await;
    let mut network = 0..=0xffff_u32;
    let refused = eventually("a client that made no request before is refused", || {
        let client = format!("2001:db8:5:{:x}::1", network.next().expect("the /48 has more networks"));
        let fleet = &fleet;
        async move { Some(get(fleet, &client, None).await).filter(|answer| answer.status != 401) }
    });
    refused.await.assert_v1_error(429, "rate_limit_exceeded");
    assert_eq!(get(&fleet, "2001:db8:6::1", None).await.status, 401, "another /48 has its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_a_valid_credential_while_others_at_its_address_are_refused() {
    let fleet = Arc::new(fleet(|config| config.limits.refused_per_minute = 1).await);
    let tenant = fleet.another_tenant("inland").await;
    let mailbox = fleet.mailbox(Some(&fleet.tenant.pro), "victim@inbox.localhost").await;
    let stop = Arc::new(AtomicBool::new(false));
    let client = "203.0.113.1";
    let flood = (0..6).map(|number| {
        let (fleet, stop) = (Arc::clone(&fleet), Arc::clone(&stop));
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let token = (number % 2 == 0).then(unknown_token);
                let answer = get(&fleet, client, token.as_deref()).await;
                // Beside a load, its turn to look a token up may come too late.
                assert!([401, 429, 503].contains(&answer.status), "{answer:?}");
            }
        })
    });
    let flood: Vec<_> = flood.collect();
    eventually("the client's requests are used up", || async {
        (get(&fleet, client, None).await.status == 429).then_some(())
    })
    .await;
    for round in 0..50 {
        // In the first round these tokens are used for the first time.
        assert_eq!(get(&fleet, client, Some(&tenant.live)).await.status, 200, "round {round}");
        for (path, credential) in
            [("/pro/api/accounts", &tenant.pro), ("/api/messages", &mailbox.jwt), ("/api/me", &mailbox.jwt)]
        {
            let request = fleet.request(0, Method::GET, path).header("x-forwarded-for", client);
            assert_eq!(request.bearer(credential).send().await.status, 200, "{path}, round {round}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    for task in flood {
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_jwts_by_mailbox_and_not_by_client() {
    let fleet = fleet(|config| config.limits.api_per_second = 1).await;
    let pro = &fleet.tenant.pro;
    let [one, two] = ["one@inbox.localhost", "two@inbox.localhost"];
    let (one, two) = (fleet.mailbox(Some(pro), one).await, fleet.mailbox(Some(pro), two).await);
    let request = |path: &str| fleet.request(0, Method::GET, path).header("x-forwarded-for", "203.0.113.1");
    let public = join_all((0..30).map(|_| request("/api/domains").send())).await;
    assert!(public.iter().any(|answer| answer.status == 429), "the client's rate is used up");
    let of_one = join_all((0..30).map(|_| request("/api/me").bearer(&one.jwt).send())).await;
    assert!(of_one.iter().any(|answer| answer.status == 200));
    let limited = of_one.iter().find(|answer| answer.status == 429).expect("the mailbox' rate is used up");
    assert!(limited.header("ratelimit-policy").starts_with("\"mailbox\""), "{limited:?}");
    assert_eq!(request("/api/me").bearer(&two.jwt).send().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_the_creation_of_mailboxes_by_token() {
    let fleet = fleet(|config| {
        config.limits.api_per_second = 1;
        config.limits.pro_per_second = 1_000;
    })
    .await;
    let request =
        |method, path: &str| fleet.request(0, method, path).header("x-forwarded-for", "203.0.113.1");
    let public = join_all((0..30).map(|_| request(Method::GET, "/api/domains").send())).await;
    assert!(public.iter().any(|answer| answer.status == 429), "the client's rate is used up");
    let body = json!({ "address": "new@inbox.localhost", "password": "correct horse" });
    let created = request(Method::POST, "/api/accounts").bearer(&fleet.tenant.pro).json(&body).send().await;
    assert_eq!(created.status, 201, "{}", created.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn remembers_only_that_a_token_is_unknown_and_only_for_a_second() {
    let fleet = fleet(|_| {}).await;
    let token = fleet.token(&fleet.tenant, tempmail_model::token::TokenKind::Live).await;
    let status = async || get(&fleet, "203.0.113.1", Some(&token)).await.status;
    let change = async |statement: &'static str| {
        sqlx::query(statement).bind(&token[token.len() - 4..]).execute(&fleet.pool).await.unwrap();
    };
    // A revoked token is looked for each time.
    change("UPDATE api_token SET revoked_at = now() WHERE hint = $1").await;
    assert_eq!(status().await, 401);
    change("UPDATE api_token SET revoked_at = NULL WHERE hint = $1").await;
    assert_eq!(status().await, 200);
    change("UPDATE api_token SET expires_at = now() - interval '1 second' WHERE hint = $1").await;
    assert_eq!(status().await, 440);
    change("UPDATE api_token SET expires_at = NULL WHERE hint = $1").await;
    assert_eq!(status().await, 200);
    // So is one that its owner does not have yet.
    change("UPDATE api_token SET active = false WHERE hint = $1").await;
    assert_eq!(status().await, 401);
    change("UPDATE api_token SET active = true WHERE hint = $1").await;
    assert_eq!(status().await, 200);
    // One that is not there is not, for a second.
    change("UPDATE api_token SET hash = sha256(hash) WHERE hint = $1").await;
    assert_eq!(status().await, 401);
    sqlx::query("UPDATE api_token SET hash = sha256(convert_to($1, 'UTF8')) WHERE hint = right($1, 4)")
        .bind(&token)
        .execute(&fleet.pool)
        .await
        .unwrap();
    eventually("the token is looked for again", || async { (status().await == 200).then_some(()) }).await;
}
