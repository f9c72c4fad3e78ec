//! `GET /api/domains`

use reqwest::Method;
use tempmail_tests::App;

#[tokio::test(flavor = "multi_thread")]
async fn system_domains_are_public_and_custom_ones_are_not_among_them() {
    let app = App::start().await;
    app.system_domain("second.localhost", true).await;
    app.custom_domain(&app.tenant, "ships.example").await;
    let answer = app.request(Method::GET, "/api/domains").send().await;
    let body = answer.expect(200);
    let domains = body["domains"].as_array().unwrap();
    let names: Vec<&str> = domains.iter().filter_map(|domain| domain["domain"].as_str()).collect();
    assert_eq!(names, ["inbox.localhost", "second.localhost"], "by sort_order");
    let mut keys: Vec<&String> = domains[0].as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["default", "domain", "id", "sort_order"]);
    assert_eq!((&domains[0]["default"], &domains[1]["default"]), (&true.into(), &false.into()));
    assert_eq!((&domains[0]["sort_order"], &domains[1]["sort_order"]), (&0.into(), &1.into()));
    assert!(answer.header("cache-control").contains("max-age=60"), "{}", answer.header("cache-control"));
}
