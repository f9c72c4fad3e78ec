//! The Pro session of a browser: a cookie that only requests of the site's own page use.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::http::Request;
use tempmail_tests::{App, Response};

const PATH: &str = "/pro/api/session";
const ACCOUNTS: &str = "/pro/api/accounts";
/// The origin of the site in `App`.
const OWN: (&str, &str) = ("origin", "http://127.0.0.1:8080");
const SAME_ORIGIN: (&str, &str) = ("sec-fetch-site", "same-origin");

/// Signs in with a cookie; the answer.
async fn sign_in(app: &App, fields: &[(&str, &str)]) -> Response {
    let request = app.request(Method::POST, PATH).json(&json!({ "token": app.tenant.pro, "cookie": true }));
    with(request, fields).send().await
}

fn with(request: Request, fields: &[(&str, &str)]) -> Request {
    fields.iter().fold(request, |request, (name, value)| request.header(name, value))
}

/// The cookie of an answer, as a browser sends it: `name=value`.
fn cookie(answer: &Response) -> String {
    assert_eq!((answer.status, answer.body.len()), (204, 0), "{}", answer.text());
    answer.header("set-cookie").split(';').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_a_cookie_that_no_script_reads() {
    for (base_url, prefix, attributes) in [
        (
            "https://mail.example",
            "__Host-tempmail=",
            "Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=43200",
        ),
        (OWN.1, "tempmail=", "Path=/pro/api; HttpOnly; SameSite=Strict; Max-Age=43200"),
    ] {
        let app = App::builder().config(|config| config.http.base_url = base_url.into()).start().await;
        let answer = sign_in(&app, &[("origin", base_url)]).await;
        let set = answer.header("set-cookie");
        assert!(set.starts_with(prefix) && set.ends_with(&format!("; {attributes}")), "{set}");
        let request =
            app.request(Method::GET, PATH).header("cookie", cookie(&answer)).header("origin", base_url);
        let signed_in = request.send().await.expect(200);
        assert_eq!(signed_in["tenant"], app.tenant.id.to_string());
        assert_eq!(signed_in["name"], "harbour");
        assert!(signed_in["expires_at"].is_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_a_cookie_for_own_pages_only() {
    let app = App::start().await;
    for foreign in [
        &[][..],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("origin", "https://evil.example"), SAME_ORIGIN],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
    ] {
        let answer = sign_in(&app, foreign).await;
        answer.assert_api_error(403, "origin_not_allowed");
        assert_eq!(answer.header("set-cookie"), "", "{foreign:?}");
    }
    for own in [OWN, SAME_ORIGIN, ("origin", "http://localhost:8080")] {
        cookie(&sign_in(&app, &[own]).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn honours_the_cookie_for_requests_of_own_pages_only() {
    let app = App::start().await;
    let cookie = cookie(&sign_in(&app, &[OWN]).await);
    let ask = |fields: &[(&str, &str)]| {
        with(app.request(Method::GET, ACCOUNTS).header("cookie", &cookie), fields).send()
    };
    for own in [OWN, SAME_ORIGIN, ("origin", "http://localhost:8080")] {
        assert_eq!(ask(&[own]).await.status, 200, "{own:?}");
    }
    for foreign in [
        &[][..],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("origin", "https://evil.example"), SAME_ORIGIN],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        &[SAME_ORIGIN, SAME_ORIGIN],
    ] {
        ask(foreign).await.assert_api_error(401, "authentication_required");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ignores_the_cookie_beside_an_authorization() {
    let app = App::start().await;
    let cookie = cookie(&sign_in(&app, &[OWN]).await);
    let other = app.another_tenant("lighthouse").await;
    let with_both = |authorization: String| {
        let request = app.request(Method::GET, PATH).header("cookie", &cookie).header(OWN.0, OWN.1);
        request.header("authorization", authorization).send()
    };
    let answer = with_both(format!("Bearer {}", other.pro)).await.expect(200);
    assert_eq!(answer["tenant"], other.id.to_string());
    with_both("Bearer junk".into()).await.assert_api_error(401, "invalid_token");
    with_both("Basic YTpi".into()).await.assert_api_error(401, "invalid_token");
    with_both(String::new()).await.assert_api_error(401, "authentication_required");
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_changes_as_json_only() {
    let app = App::start().await;
    let cookie = cookie(&sign_in(&app, &[OWN]).await);
    let post =
        |path: &'static str| app.request(Method::POST, path).header("cookie", &cookie).header(OWN.0, OWN.1);
    let created = post("/pro/api/tokens").json(&json!({ "name": "robot" })).send().await;
    assert_eq!(created.status, 201);
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        for path in ["/pro/api/tokens", "/pro/api/domains/00000000-0000-7000-8000-000000000000/verify"] {
            let answer = post(path).body(media_type, "{\"name\":\"robot\"}").send().await;
            answer.assert_api_error(415, "unsupported_media_type");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn honours_no_other_cookie_and_no_token_in_one() {
    let app = App::start().await;
    let cookie = cookie(&sign_in(&app, &[OWN]).await);
    let session = cookie.strip_prefix("tempmail=").unwrap();
    let ask = |value: String| {
        app.request(Method::GET, ACCOUNTS).header("cookie", value).header(OWN.0, OWN.1).send()
    };
    assert_eq!(ask(format!("theme=dark; {cookie}; a=b")).await.status, 200);
    for missing in [
        format!("__Host-tempmail={session}"),
        format!("Tempmail={session}"),
        format!("{cookie}; {cookie}"),
        "tempmail=".to_owned(),
        session.to_owned(),
    ] {
        ask(missing).await.assert_api_error(401, "authentication_required");
    }
    for invalid in [format!("tempmail={}", app.tenant.pro), "tempmail=a.b.c".to_owned(), format!("{cookie}x")]
    {
        ask(invalid).await.assert_api_error(401, "invalid_token");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn honours_the_cookie_on_the_pro_api_only() {
    let app = App::start().await;
    let cookie = cookie(&sign_in(&app, &[OWN]).await);
    for path in ["/api/me", "/api/messages", "/v1/tokens", "/v1/me"] {
        let request = app.request(Method::GET, path).header("cookie", &cookie).header(OWN.0, OWN.1);
        assert_eq!(request.send().await.error(401), "authentication_required", "{path}");
    }
    let body = json!({ "address": "boat@inbox.localhost", "password": "correct horse" });
    let request = app.request(Method::POST, "/api/accounts").header("cookie", &cookie).header(OWN.0, OWN.1);
    let created = request.json(&body).send().await.expect(201);
    let me = app.request(Method::GET, "/api/me").bearer(created["token"].as_str().unwrap()).send().await;
    assert_eq!(me.expect(200)["role"], "free", "the cookie gave no right");
}

#[tokio::test(flavor = "multi_thread")]
async fn removes_the_cookie_of_a_session_that_has_ended() {
    let app = App::start().await;
    let cookie = cookie(&sign_in(&app, &[OWN]).await);
    let (_, session) = cookie.split_once('=').unwrap();
    let show = || app.request(Method::GET, PATH).header("cookie", &cookie).header(OWN.0, OWN.1);
    assert_eq!(show().send().await.header("set-cookie"), "");
    assert_eq!(app.request(Method::DELETE, PATH).bearer(session).send().await.status, 204);
    let ended = show().send().await;
    ended.assert_api_error(440, "session_expired");
    assert_eq!(ended.header("set-cookie"), "tempmail=; Path=/pro/api; HttpOnly; SameSite=Strict; Max-Age=0");
    // A credential that is presented itself says nothing about the cookie.
    let beside = show().bearer(session).send().await;
    beside.assert_api_error(440, "session_expired");
    assert_eq!(beside.header("set-cookie"), "");
}
