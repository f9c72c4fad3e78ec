//! The listeners: whom they answer, and whom not.

use reqwest::Method;
use tempmail_model::surface::DropInSurface;
use tempmail_tests::App;

use super::Surface;

/// A path with `GET` of each surface that needs a credential.
fn path(surface: DropInSurface) -> &'static str {
    match surface {
        DropInSurface::Mailpit => "/api/v1/messages",
        DropInSurface::MailHog => "/api/v2/messages",
        DropInSurface::Mailosaur => "/api/servers",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_surface_that_is_off_is_404_and_listens_nowhere() {
    let app = App::start().await;
    let token = app.surface_token(&app.tenant, &DropInSurface::ALL).await;
    for path in ["/api/v1/messages", "/api/v2/messages", "/api/servers", "/messages", "/view/latest.txt"] {
        let answer = app.request(Method::GET, path).bearer(&token).send().await;
        answer.assert_api_error(404, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn surfaces_share_no_paths_with_the_interface_or_with_each_other() {
    let app = App::builder().drop_ins().start().await;
    let token = app.surface_token(&app.tenant, &DropInSurface::ALL).await;
    for surface in DropInSurface::ALL {
        for other in ["/v1/config", "/api/domains", "/pro/api/usage", "/", "/openapi.json"] {
            let answer = app.drop_in_request(surface, Method::GET, other).bearer(&token).send().await;
            assert_eq!(answer.status, 404, "{surface:?} {other}: {}", answer.text());
        }
    }
    app.request(Method::GET, "/domains").send().await.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_pages_of_other_sites_and_asks_no_browser_for_a_password() {
    let app = App::builder().drop_ins().start().await;
    let token = app.surface_token(&app.tenant, &DropInSurface::ALL).await;
    for surface in DropInSurface::ALL {
        let own = format!("http://{}", app.drop_in(surface));
        let send = |field: &'static str, value: String| {
            app.drop_in_request(surface, Method::GET, path(surface))
                .bearer(&token)
                .header(field, value)
                .send()
        };
        for (field, value) in [
            ("origin", "https://evil.example".to_owned()),
            ("origin", "null".to_owned()),
            ("origin", format!("http://{}", app.http())),
            ("sec-fetch-site", "cross-site".to_owned()),
            ("sec-fetch-site", "same-site".to_owned()),
        ] {
            let answer = send(field, value.clone()).await;
            assert_eq!(answer.status, 403, "{surface:?} {field}: {value}: {}", answer.text());
            assert_eq!(answer.header("access-control-allow-origin"), "");
        }
        assert_ne!(send("origin", own).await.status, 403, "{surface:?}");
        let refused = app.drop_in_request(surface, Method::GET, path(surface)).send().await;
        assert_eq!(refused.status, 401);
        assert!(refused.header("www-authenticate").starts_with("Bearer"), "{refused:?}");
        let cookie = format!("__Host-tempmail={token}; token={token}");
        let by_cookie =
            app.drop_in_request(surface, Method::GET, path(surface)).header("cookie", cookie).send().await;
        assert_eq!(by_cookie.status, 401, "{surface:?}");
        let preflight = app
            .drop_in_request(surface, Method::OPTIONS, path(surface))
            .header("origin", "http://127.0.0.1:8080")
            .header("access-control-request-method", "DELETE")
            .send()
            .await;
        assert_eq!(preflight.status, 403, "{surface:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_requests_that_name_another_host() {
    let app = App::builder().drop_ins().config(|config| config.http.check_host = true).start().await;
    for surface in DropInSurface::ALL {
        let named = |host: &'static str| {
            app.drop_in_request(surface, Method::GET, path(surface)).header("host", host).send()
        };
        assert_eq!(named("evil.example").await.status, 421, "{surface:?}");
        assert_eq!(named("localhost").await.status, 401, "{surface:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_requests_by_token() {
    let app = App::builder().drop_ins().config(|config| config.limits.v1_per_second = 5).start().await;
    let token = app.surface_token(&app.tenant, &[DropInSurface::Mailpit]).await;
    let requests = (0..40).map(|_| {
        app.drop_in_request(DropInSurface::Mailpit, Method::GET, "/api/v1/tags").bearer(&token).send()
    });
    let answers = futures_util::future::join_all(requests).await;
    let limited = answers.iter().find(|answer| answer.status == 429).expect("one is above the limit");
    assert!(!limited.header("retry-after").is_empty() && !limited.header("ratelimit").is_empty());
    assert!(answers.iter().any(|answer| answer.status == 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_bodies_that_are_too_large_or_no_json() {
    let surface = Surface::start(DropInSurface::Mailpit).await;
    let put = |media_type: &'static str, body: Vec<u8>| {
        surface.request(Method::PUT, "/api/v1/messages").body(media_type, body).send()
    };
    assert_eq!(put("application/json", vec![b' '; 70_000]).await.status, 413);
    assert_eq!(put("application/x-www-form-urlencoded", b"{}".to_vec()).await.status, 415);
    for wrong in
        [&b"{"[..], b"[]", b"{\"Read\": 1}", b"{\"IDs\": \"x\"}", b"{\"IDs\": [1]}", b"{\"Search\": 1}"]
    {
        let answer = put("application/json", wrong.to_vec()).await;
        assert_eq!(answer.status, 400, "{}", String::from_utf8_lossy(wrong));
        assert!(answer.text().len() > 10, "{}", answer.text());
    }
}
