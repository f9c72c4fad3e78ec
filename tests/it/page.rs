//! The web page as it is served: addresses, headers, encodings and caching.

use std::io::Read as _;

use reqwest::Method;
use tempmail_tests::App;

/// The policy that issue and page agree on.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

#[tokio::test(flavor = "multi_thread")]
async fn serves_the_documents_and_their_files_with_strict_headers() {
    let app = App::start().await;
    for (path, media_type) in
        [("/", "text/html"), ("/dashboard", "text/html"), ("/page/page.css", "text/css")]
    {
        let answer = app.request(Method::GET, path).send().await;
        assert_eq!((answer.status, answer.media_type()), (200, media_type), "{path}");
        for (name, value) in [
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-cache"),
        ] {
            assert_eq!(answer.header(name), value, "{path} {name}");
        }
        let permissions = answer.header("permissions-policy");
        assert!(permissions.starts_with("clipboard-write=(self), "), "{permissions}");
        let others = permissions.split(", ").skip(1);
        assert!(others.clone().count() > 10 && others.into_iter().all(|one| one.ends_with("=()")));
        assert!(!answer.text().is_empty());
        let head = app.request(Method::HEAD, path).send().await;
        assert_eq!((head.status, head.header("etag")), (200, answer.header("etag")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_304_to_who_has_a_file_and_compresses_it_for_who_takes_gzip() {
    let app = App::start().await;
    let get = |accepted: &'static str, known: String| {
        let request = app.request(Method::GET, "/page/page.css").header("accept-encoding", accepted);
        request.header("if-none-match", known).send()
    };
    let plain = get("identity", "\"other\"".to_owned()).await;
    let compressed = get("gzip", String::new()).await;
    assert_eq!((plain.status, plain.header("content-encoding")), (200, ""));
    assert_eq!((compressed.status, compressed.header("content-encoding")), (200, "gzip"));
    assert_ne!(plain.header("etag"), compressed.header("etag"));
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&compressed.body[..]).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain.body);
    for (accepted, answer) in [("identity", &plain), ("gzip", &compressed)] {
        let varies: Vec<_> = answer.headers.get_all("vary").iter().map(|value| value.as_bytes()).collect();
        assert!(varies.contains(&&b"accept-encoding"[..]), "{varies:?}");
        let again = get(accepted, answer.header("etag").to_owned()).await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{accepted}");
        assert_eq!(again.header("etag"), answer.header("etag"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_404_to_anything_that_is_no_file_of_the_page() {
    let app = App::start().await;
    for path in [
        "/page/",
        "/page/nothing.js",
        "/page/index.html",
        "/page/dashboard.html",
        "/page/..%2F..%2FCargo.toml",
        "/page/%2e%2e/Cargo.toml",
        "/page/%FF",
        "/index.html",
        "/dashboard/",
    ] {
        app.request(Method::GET, path).send().await.assert_api_error(404, "not_found");
    }
    assert_eq!(app.request(Method::POST, "/").send().await.error(405), "method_not_allowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_no_page_where_it_is_switched_off() {
    let app = App::builder().config(|config| config.http.page = false).start().await;
    for path in ["/", "/dashboard", "/page/page.css"] {
        app.request(Method::GET, path).send().await.assert_api_error(404, "not_found");
    }
    assert_eq!(app.request(Method::GET, "/v1/config").send().await.status, 200);
}
