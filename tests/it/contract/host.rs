//! The host that a request names, where the service checks it (`http.check_host`, as `up` does).

use reqwest::Method;
use tempmail_tests::App;
use tempmail_tests::contract::operations;
use tempmail_tests::raw::RawConnection;

use super::{bare_request, unknown_path};

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_foreign_host_on_every_operation() {
    let app = App::builder().config(|config| config.http.check_host = true).start().await;
    for operation in operations() {
        let request = bare_request(&app, operation, &unknown_path(operation)).header("host", "evil.example");
        let answer = request.send().await;
        assert_eq!(answer.error(421), "misdirected_request", "{}", operation.id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn says_which_host_is_foreign_and_which_setting_admits_it() {
    let app = App::builder().config(|config| config.http.check_host = true).start().await;
    let refused = app.request(Method::GET, "/api/domains").header("host", "upstream:8080").send().await;
    refused.assert_api_error(421, "misdirected_request");
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("\"upstream:8080\"") && message.contains("`http.hosts`"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_health_checks_that_name_no_host() {
    let app = App::builder().config(|config| config.http.check_host = true).start().await;
    let mut connection = RawConnection::connect(app.http(), None).await.unwrap();
    connection.send("GET /v1/config HTTP/1.0\r\n\r\n").await.unwrap();
    let answer = String::from_utf8(connection.read_to_end().await).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_the_own_host_loopback_and_those_of_the_setting() {
    let app = App::builder()
        .config(|config| {
            config.http.check_host = true;
            config.http.base_url = "https://mail.example".into();
            config.http.hosts = vec!["mail.internal".into()];
        })
        .start()
        .await;
    for (host, status) in [
        ("mail.example", 200),
        ("mail.internal:8080", 200),
        ("localhost:1", 200),
        ("[::1]", 200),
        ("mail.example.evil.example", 421),
        ("192.0.2.1", 421),
    ] {
        let answer = app.request(Method::GET, "/v1/config").header("host", host).send().await;
        assert_eq!(answer.status, status, "{host}");
    }
}
