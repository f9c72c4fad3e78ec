//! `GET /v1/tokens`

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::App;

use crate::pro_api::assert_time;
use crate::token_api::assert_accepts_only_live_tokens;

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_live_tokens() {
    assert_accepts_only_live_tokens(Method::GET, "/v1/tokens").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_only_live_tokens_of_the_tenant() {
    let app = App::start().await;
    app.another_tenant("lighthouse").await;
    let answer = app.get("/v1/tokens").await.expect(200);
    let listed = &answer["tokens"][0];
    assert_time(&listed["created_at"]);
    let expected = json!({
        "id": listed["id"],
        "name": "test",
        "kind": "live",
        "hint": app.tenant.live[app.tenant.live.len() - 4..],
        "created_at": listed["created_at"],
        "last_used_at": listed["last_used_at"],
        "expires_at": null,
        "revoked_at": null,
            "surfaces": [],
    });
    assert_eq!(answer, json!({ "tokens": [expected] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_newest_first_in_pages() {
    let app = App::start().await;
    let mut names = vec!["test".to_owned()];
    for n in 1..=3 {
        app.clock.advance(jiff::SignedDuration::from_secs(1));
        let name = n.to_string();
        let request = app.request(Method::POST, "/v1/tokens").live(&app.tenant.live);
        assert_eq!(request.json(&json!({ "name": name })).send().await.status, 201);
        names.insert(0, name);
    }
    let listed = app.get("/v1/tokens?page=1").await.expect(200);
    let listed: Vec<&Value> = listed["tokens"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(listed, names.iter().map(|name| name.as_str()).collect::<Vec<_>>());
    assert_eq!(app.get("/v1/tokens?page=2").await.expect(200), json!({ "tokens": [] }));
    for query in ["?page=0", "?page=-1", "?page=x", "?page="] {
        app.get(&format!("/v1/tokens{query}")).await.assert_v1_error(400, "invalid_request");
    }
}
