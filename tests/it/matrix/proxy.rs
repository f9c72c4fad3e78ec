//! What a trusted proxy writes of a client, in octets of every kind: the client is always limited, and never another one.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::{App, Response};
use uuid::Uuid;

/// Mailboxes that a client may make, and sign-ins of it that may fail.
const LIMIT: u32 = 2;
/// The field with the client's address.
const FORWARDED: &str = "x-forwarded-for";
/// Other fields that proxies write.
const OTHERS: [&str; 12] = [
    "cookie",
    "forwarded",
    "traceparent",
    "tracestate",
    "via",
    "x-client-ip",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-real-ip",
    "x-request-id",
];

/// Loopback, where all requests of tests come from, is a trusted proxy, and itself has no limits.
async fn behind_a_proxy() -> App {
    let builder = App::builder().config(|config| {
        config.http.trusted_proxies.clone_from(&config.http.unlimited_networks);
        config.limits.free_mailboxes_per_hour = LIMIT;
        config.limits.sign_in_failures = LIMIT;
    });
    builder.start().await
}

/// Makes a free mailbox, as the client that these lines of a field name.
async fn make(app: &App, lines: &[(&str, &[u8])]) -> Response {
    let body = json!({
        "address": format!("{}@inbox.localhost", Uuid::new_v4().simple()), "password": "correct horse"
    });
    let request = app.request(Method::POST, "/api/accounts").json(&body);
    lines.iter().fold(request, |request, (field, line)| request.header(field, line)).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_a_client_by_the_last_hop_whatever_is_before_it() {
    let app = behind_a_proxy().await;
    let long = b"\xff, ".repeat(1_000);
    let before: [&[&[u8]]; 8] = [
        &[],
        &[b"\xff"],
        &[b"\xff\xfe, \x80"],
        &[b"\xff", b"\xc3\xa9"],
        &[b"198.51.100.1, \xff,"],
        &[b"unknown, _hidden, \"[2001:db8::1]:80\", , ,"],
        &[b"127.0.0.1"],
        &[&long],
    ];
    for (number, before) in before.into_iter().enumerate() {
        // The proxy appends to the last line, or adds one.
        for (place, last) in
            [format!("203.0.{number}.1"), format!("203.0.{number}.2:4711")].iter().enumerate()
        {
            let mut lines: Vec<Vec<u8>> = before.iter().map(|line| line.to_vec()).collect();
            match lines.last_mut() {
                Some(line) if place == 0 => line.extend([&b", "[..], last.as_bytes()].concat()),
                _ => lines.push(last.as_bytes().to_vec()),
            }
            let lines: Vec<_> = lines.iter().map(|line| (FORWARDED, line.as_slice())).collect();
            for made in 1..=LIMIT {
                assert_eq!(make(&app, &lines).await.status, 201, "{made} of {lines:?}");
            }
            make(&app, &lines).await.assert_api_error(429, "rate_limit_exceeded");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_together_the_clients_that_a_proxy_does_not_name() {
    let app = behind_a_proxy().await;
    let mut made = 0;
    for last in [
        &b"\xff"[..],
        b"",
        b"unknown",
        b"_hidden",
        b"unix:",
        b"203.0.113.6\xff",
        b"[::1",
        b"203.0.113.6:port",
    ] {
        let appended = [&b"203.0.113.7, "[..], last].concat();
        for lines in
            [&[(FORWARDED, last)][..], &[(FORWARDED, &appended)], &[(FORWARDED, b"\xff"), (FORWARDED, last)]]
        {
            let answer = make(&app, lines).await;
            if answer.status == 201 {
                made += 1;
            } else {
                answer.assert_api_error(429, "rate_limit_exceeded");
            }
        }
    }
    assert_eq!(made, LIMIT);
    for _ in 0..=LIMIT {
        assert_eq!(make(&app, &[]).await.status, 201, "the proxy itself has no limit");
    }
    assert_eq!(make(&app, &[(FORWARDED, b"203.0.113.7")]).await.status, 201, "who is named has its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_the_failed_sign_ins_of_a_client_whatever_octets_it_sends() {
    let app = behind_a_proxy().await;
    app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    let guess = json!({ "address": "quay@inbox.localhost", "password": "wrong password" });
    for line in [&b"\xff, 203.0.113.6"[..], b"203.0.113.6\xff"] {
        let mut answers = Vec::new();
        for _ in 0..=LIMIT {
            let request = app.request(Method::POST, "/api/token").header(FORWARDED, line);
            answers.push(request.json(&guess).send().await);
        }
        let last = answers.pop().unwrap();
        answers.iter().for_each(|answer| answer.assert_api_error(401, "invalid_credentials"));
        last.assert_api_error(429, "rate_limit_exceeded");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_fields_of_a_proxy_change_nothing() {
    let app = behind_a_proxy().await;
    for (number, field) in OTHERS.into_iter().enumerate() {
        for (place, value) in [&b"\xff"[..], b"for=203.0.113.9;\xff", b"203.0.113.9"].into_iter().enumerate()
        {
            let client = format!("198.51.{number}.{place}");
            let lines = [(FORWARDED, client.as_bytes()), (field, value)];
            for made in 1..=LIMIT {
                let answer = make(&app, &lines).await;
                assert_eq!(answer.status, 201, "{made} with {field}: {}", answer.text());
            }
            make(&app, &lines).await.assert_api_error(429, "rate_limit_exceeded");
        }
    }
}
