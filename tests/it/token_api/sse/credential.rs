//! The credential of a stream: a header, or `token` in the query.

use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_tests::http::split_by_rate_limit;
use tempmail_tests::{App, EventStream, Response};

use super::{ADDR, USER, request};

/// The response to a request with these credentials.
async fn presented(app: &App, header: Option<&str>, query: Option<&str>) -> Response {
    let path = query.map_or_else(|| ADDR.to_owned(), |token| format!("{ADDR}&token={token}"));
    let request = app.request(Method::GET, &path);
    match header {
        Some(token) => request.live(token).send().await,
        None => request.send().await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_the_token_in_header_or_query_or_the_same_in_both() {
    let app = App::start().await;
    let (live, other) = (&app.tenant.live, &app.token(&app.tenant, TokenKind::Live).await);
    for (header, query) in
        [(Some(live), None), (None, Some(live)), (Some(live), Some(live)), (Some(&String::new()), Some(live))]
    {
        let answer = presented(&app, header.map(String::as_str), query.map(String::as_str)).await;
        assert_eq!((answer.status, answer.media_type()), (200, "text/event-stream"));
    }
    presented(&app, None, None).await.assert_v1_error(401, "authentication_required");
    presented(&app, None, Some("")).await.assert_v1_error(401, "authentication_required");
    for (header, query) in [
        (Some(live.as_str()), Some(other.as_str())),
        (Some("x"), Some(live)),
        (Some(live), Some("x")),
        (None, Some("x")),
        (None, Some(&app.tenant.pro)),
    ] {
        presented(&app, header, query).await.assert_v1_error(401, "invalid_token");
    }
    let twice = app.request(Method::GET, &format!("{ADDR}&token={live}&token={live}")).send().await;
    twice.assert_v1_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limits_a_query_token_and_accepts_it_for_streams_only() {
    let app = App::builder().config(|config| config.limits.v1_per_second = 1).start().await;
    let path = format!("{USER}?token={}", app.tenant.live);
    let answers = futures_util::future::join_all((0..60).map(|_| app.request(Method::GET, &path).send()));
    split_by_rate_limit(&answers.await);
    let elsewhere = app.request(Method::GET, &format!("/v1/me?token={}", app.tenant.live)).send().await;
    elsewhere.assert_v1_error(401, "authentication_required");
}

#[tokio::test(flavor = "multi_thread")]
async fn allows_a_page_of_an_allowed_origin() {
    let app = App::start().await;
    let request = request(&app, &app.tenant.live, USER).header("origin", "http://127.0.0.1:8080");
    let stream = EventStream::open(request).await;
    assert_eq!(stream.head().header("access-control-allow-origin"), "http://127.0.0.1:8080");
}
