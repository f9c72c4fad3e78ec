//! `GET /v1/config`

use reqwest::Method;
use tempmail_tests::App;

#[tokio::test(flavor = "multi_thread")]
async fn returns_a_public_cacheable_configuration() {
    let app = App::start().await;
    app.system_domain("second.localhost", true).await;
    app.custom_domain(&app.tenant, "custom.example").await;
    let answer = app.request(Method::GET, "/v1/config").send().await;
    let config = answer.expect(200);
    assert!(answer.header("cache-control").contains("max-age=60"), "{}", answer.header("cache-control"));
    assert_eq!(
        config["system_domains"],
        serde_json::json!([
            { "domain": "inbox.localhost", "default": true },
            { "domain": "second.localhost", "default": false },
        ])
    );
    assert_eq!(config["mx_host"], tempmail_tests::tls::NAME);
    assert_eq!(config["ttl_seconds"], 3600);
    assert_eq!(config["long_poll_seconds"], 25);
    let rules = &config["local_part_rules"];
    assert_eq!((&rules["min_length"], &rules["max_length"]), (&1.into(), &64.into()));
    assert!(rules["pattern"].as_str().unwrap().starts_with('^'));
    let reserved: Vec<&str> =
        rules["reserved"].as_array().unwrap().iter().filter_map(|n| n.as_str()).collect();
    for name in ["postmaster", "abuse", "hostmaster", "webmaster", "admin", "administrator", "ssladmin"] {
        assert!(reserved.contains(&name), "{name}");
    }
}
