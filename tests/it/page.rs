//! The web page as it is served: addresses, headers, encodings and caching.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use reqwest::Method;
use tempmail_tests::App;
use tempmail_tests::contract::{NO_CODE, Operation, operations};

/// The policy that issue and page agree on.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

#[tokio::test(flavor = "multi_thread")]
async fn serves_the_documents_and_their_files_with_strict_headers() {
    let app = App::start().await;
    for (path, media_type) in
        [("/", "text/html"), ("/dashboard", "text/html"), ("/page/icon.svg", "image/svg+xml")]
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
async fn serves_scripts_and_styles_as_what_they_are_to_its_own_origin_only() {
    let app = App::start().await;
    for (path, media_type) in [("/page/page.css", "text/css"), ("/page/inbox/main.js", "text/javascript")] {
        let answer = app.request(Method::GET, path).send().await;
        assert_eq!((answer.status, answer.media_type()), (200, media_type), "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
        // As of every answer; for what they do the document's policy holds.
        let policy = answer.header("content-security-policy");
        assert_eq!(policy, "default-src 'none'; frame-ancestors 'none'");
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

/// A file of the page.
fn read(path: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api-server/page");
    std::fs::read_to_string(folder.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The paths in quotes that follow a word, such as those of `from "…"`.
fn quoted_after<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let starts = text.match_indices(word).map(|(at, found)| &text[at + found.len()..]);
    starts.filter_map(|rest| rest.split('"').next()).collect()
}

/// A module's path from the path of what imports it.
fn resolve(importer: &str, import: &str) -> String {
    let mut parts: Vec<&str> = importer.split('/').collect();
    parts.pop();
    for part in import.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// All modules that a module needs before it runs, itself first.
fn modules_of(main: &str) -> Vec<String> {
    let mut modules = vec![main.to_owned()];
    let mut next = 0;
    while next < modules.len() {
        let text = read(&modules[next]);
        // Others are in sample code.
        for import in quoted_after(&text, "from \"").into_iter().filter(|import| import.starts_with('.')) {
            let module = resolve(&modules[next], import);
            if !modules.contains(&module) {
                modules.push(module);
            }
        }
        next += 1;
    }
    modules
}

#[test]
fn documents_preload_every_module_that_they_need_and_no_other() {
    for (document, main) in [("index.html", "inbox/main.js"), ("dashboard.html", "dashboard/main.js")] {
        let text = read(document);
        let preloaded = quoted_after(&text, "modulepreload\" href=\"/page/");
        let preloaded: BTreeSet<&str> = preloaded.into_iter().collect();
        let modules = modules_of(main);
        let needed: BTreeSet<&str> = modules[1..].iter().map(String::as_str).collect();
        let differences: Vec<_> = needed.symmetric_difference(&preloaded).collect();
        assert!(differences.is_empty(), "{document}: {differences:?}");
    }
}

#[test]
fn has_words_for_every_error_code() {
    let texts = read("text/en.js");
    let (_, errors) = texts.split_once("\n  errors: {\n").expect("errors have words");
    let codes: BTreeSet<String> = operations()
        .iter()
        .flat_map(Operation::responses)
        .filter(|(status, code)| *status >= 400 && code != NO_CODE)
        .map(|(_, code)| code)
        .collect();
    assert!(codes.len() > 20, "{codes:?}");
    let missing: Vec<_> = codes.iter().filter(|code| !errors.contains(&format!("    {code}: {{"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
