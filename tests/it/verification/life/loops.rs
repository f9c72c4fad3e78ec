//! The loop as the real program runs it.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::http::Request;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Binary, TestDns, tls};

#[tokio::test(flavor = "multi_thread")]
async fn checks_pending_domains_in_up() {
    tls::install_provider();
    let dns = TestDns::start().await;
    dns.domain("ships.test", 1).await;
    let installation = UpInstallation::new();
    let mut command = installation.command();
    command.arg("--dns-server").arg(dns.recursive().to_string());
    command
        .env("TEMPMAIL_LIMITS__PRO_PER_SECOND", "1000")
        .env("TEMPMAIL_TUNING", r#"{"dns": {"interval_seconds": 1}}"#);
    command.env("TEMPMAIL_SMTP__HOSTNAME", "mx.site.test");
    let mut up = Binary::spawn(command);
    up.wait_for_line("ready");

    let credentials = installation.credentials();
    let text = |key: &str| credentials[key].as_str().unwrap().to_owned();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = |method| {
        let url = format!("{}/pro/api/domains", text("base_url"));
        Request::new(&client, method, &url).bearer(&text("pro_token"))
    };
    let made = ask(Method::POST).json(&json!({ "domain": "ships.test" })).send().await.expect(201);
    dns.set_verified("ships.test", made["verify_token"].as_str().unwrap(), "mx.site.test").await;
    eventually("the loop verifies it", || async {
        let listed = ask(Method::GET).send().await.expect(200);
        (listed["domains"][0]["verify_status"] == "verified").then_some(())
    })
    .await;

    let url = format!("http://{}/metrics", installation.admin);
    let metrics = eventually("the check is counted", || async {
        let metrics = Request::new(&client, Method::GET, &url).send().await.text();
        metrics.contains("tempmail_domain_checks_total{result=\"verified\"} 1").then_some(metrics)
    })
    .await;
    assert!(metrics.contains("tempmail_domains_due"), "{metrics}");
    for canary in ["ships.test", made["verify_token"].as_str().unwrap()] {
        assert!(!metrics.contains(canary) && !up.stderr().contains(canary), "{canary}");
    }
}
