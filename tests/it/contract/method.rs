//! Paths and methods of the router are those of the document.

use std::collections::BTreeSet;

use reqwest::Method;
use tempmail_tests::App;
use tempmail_tests::contract::{methods, operations};

use super::{bare_request, unknown_path};

/// Paths of the document.
fn paths() -> BTreeSet<&'static str> {
    operations().iter().map(|operation| operation.path.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_every_documented_operation() {
    let app = App::start().await;
    for operation in operations() {
        // Without credential, body and upgrade only an unknown route returns 404, and a document that does not exist.
        if operation.id == "openDocument" {
            continue;
        }
        let answer = bare_request(&app, operation, &unknown_path(operation)).send().await;
        let answered = [200, 401, 415, 426].contains(&answer.status);
        assert!(answered, "{} {}: {}", operation.method, operation.path, answer.status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_405_with_the_allowed_methods_for_any_other_method() {
    let app = App::start().await;
    let others = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"];
    for path in paths() {
        let here = methods(path);
        let unknown_path =
            path.replace("{index}", "0").replace("{address}", super::FULL).replace("{id}", "x");
        for method in others.iter().filter(|method| !here.contains(**method)) {
            let method: Method = method.parse().unwrap();
            let answer = app.request(method.clone(), &unknown_path).send().await;
            assert_eq!(answer.status, 405, "{method} {path}");
            let allowed: BTreeSet<&str> = answer.header("allow").split(',').map(str::trim).collect();
            assert_eq!(allowed, here.iter().map(String::as_str).collect(), "{method} {path}");
            if method != Method::HEAD {
                assert_eq!(answer.error(405), "method_not_allowed");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_head_like_get_without_a_body() {
    let app = App::start().await;
    for operation in operations().iter().filter(|operation| operation.method == Method::GET) {
        let get = app.request(Method::GET, &unknown_path(operation)).send().await;
        let head = app.request(Method::HEAD, &unknown_path(operation)).send().await;
        assert_eq!((head.status, head.media_type()), (get.status, get.media_type()), "{}", operation.id);
        assert!(head.body.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_in_the_error_format_of_the_surface_for_unknown_paths() {
    let app = App::start().await;
    let mut elsewhere: BTreeSet<String> =
        ["/index.html", "//", "/api", "/pro", "/pro/api", "/v1", "/v2/me"].map(str::to_owned).into();
    for path in paths() {
        let path = path.replace("{index}", "0").replace("{address}", super::FULL).replace("{id}", "x");
        let (parent, last) = path.rsplit_once('/').unwrap();
        elsewhere.extend([
            format!("{path}/"),
            format!("{path}/nothing"),
            format!("/nothing{path}"),
            format!("{parent}//{last}"),
            format!("{}x", path.to_uppercase()),
            parent.to_owned(),
        ]);
    }
    elsewhere.retain(|path| !path.is_empty() && methods(path).is_empty());
    assert!(elsewhere.len() > 50);
    for path in elsewhere {
        for method in [Method::GET, Method::DELETE] {
            let answer = app.request(method, &path).send().await;
            if path == "/v1" || path.starts_with("/v1/") {
                answer.assert_v1_error(404, "not_found");
            } else {
                answer.assert_api_error(404, "not_found");
            }
        }
    }
}
