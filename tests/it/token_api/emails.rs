//! `GET /v1/emails`: a list of everything that a tenant owns.

use serde_json::Value;
use tempmail_tests::App;

use super::subjects;

const PATH: &str = "/v1/emails";

const BOX: &str = "box@inbox.localhost";

/// The subjects of all pages.
async fn all_pages(app: &App, path: &str) -> Vec<String> {
    let (mut met, mut before) = (Vec::new(), String::new());
    loop {
        let answer = app.get(&format!("{path}{before}")).await.expect(200);
        met.extend(subjects(&answer["emails"]).into_iter().map(str::to_owned));
        match &answer["next_before"] {
            Value::String(cursor) => before = format!("&before={cursor}"),
            last => {
                assert!(last.is_null());
                return met;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_exactly_what_the_tenant_owns_newest_first() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    app.custom_domain(&app.tenant, "ours.example").await;
    app.mailbox(Some(&other.pro), "theirs@inbox.localhost").await;
    app.custom_domain(&other, "theirs.example").await;
    app.mailbox(None, "free@inbox.localhost").await;
    let empty = app.get(PATH).await.expect(200);
    assert_eq!((empty["emails"].as_array().unwrap().len(), &empty["next_before"]), (0, &Value::Null));
    for (address, subject) in [
        (BOX, "1"),
        ("theirs@inbox.localhost", "theirs"),
        ("box+tag@inbox.localhost", "2"),
        ("any@theirs.example", "theirs"),
        ("any@ours.example", "3"),
        ("free@inbox.localhost", "free"),
        ("shared@inbox.localhost", "shared"),
    ] {
        app.deliver(address, subject, "").await;
    }
    let listed = app.get(PATH).await.expect(200);
    assert_eq!(subjects(&listed["emails"]), ["3", "2", "1"]);
    assert_eq!(listed["emails"], app.get("/v1/me").await.expect(200)["emails"]);
    let theirs = app.get_as(&other.live, PATH).await.expect(200);
    assert_eq!(subjects(&theirs["emails"]), ["theirs", "theirs"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_by_its_cursor_while_mail_arrives_and_goes() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ours.example").await;
    for number in 1..=7 {
        app.deliver("any@ours.example", &number.to_string(), "").await;
    }
    assert_eq!(all_pages(&app, "/v1/emails?limit=3").await, ["7", "6", "5", "4", "3", "2", "1"]);
    assert_eq!(all_pages(&app, "/v1/emails?limit=7").await.len(), 7);
    let first = app.get("/v1/emails?limit=3").await.expect(200);
    let before = first["next_before"].as_str().unwrap().to_owned();
    app.deliver("any@ours.example", "8", "").await;
    let last = first["emails"][2]["id"].as_str().unwrap();
    assert_eq!(app.delete(&format!("/v1/email/{last}")).await.status, 204);
    let second = app.get(&format!("/v1/emails?limit=3&before={before}")).await.expect(200);
    assert_eq!(subjects(&second["emails"]), ["4", "3", "2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_one_address_by_the_rights_of_its_inbox() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    app.mailbox(Some(&other.pro), "theirs@inbox.localhost").await;
    for (address, subject) in
        [(BOX, "1"), ("box+tag@inbox.localhost", "2"), ("shared@inbox.localhost", "shared")]
    {
        app.deliver(address, subject, "").await;
    }
    let list = async |address: &str| app.get(&format!("{PATH}?address={address}")).await;
    for (address, expected) in [
        (BOX, vec!["2", "1"]),
        ("box+tag@inbox.localhost", vec!["2"]),
        ("box%2Btag@inbox.localhost", vec!["2"]),
        ("shared@inbox.localhost", vec!["shared"]),
        ("nothing@inbox.localhost", vec![]),
    ] {
        assert_eq!(subjects(&list(address).await.expect(200)["emails"]), expected, "{address}");
    }
    assert_eq!(all_pages(&app, &format!("{PATH}?limit=1&address={BOX}")).await, ["2", "1"]);
    for address in ["theirs@inbox.localhost", "a@elsewhere.example"] {
        list(address).await.assert_v1_error(404, "not_found");
    }
    list("nobody").await.assert_v1_error(400, "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_the_limit_and_rejects_invalid_parameters() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.custom_domain(&app.tenant, "ours.example").await;
    for number in 0..52 {
        app.deliver("any@ours.example", &number.to_string(), "").await;
    }
    let count = async |query: &str| {
        app.get(&format!("{PATH}{query}")).await.expect(200)["emails"].as_array().unwrap().len()
    };
    assert_eq!((count("").await, count("?limit=1000").await, count("?limit=1").await), (20, 50, 1));
    for query in ["before=", "before=x", "before=0", "address="] {
        app.get(&format!("{PATH}?{query}")).await.assert_v1_error(400, "invalid_request");
    }
    let before = app.get(PATH).await.expect(200)["next_before"].as_str().unwrap().to_owned();
    let foreign = app.get_as(&other.live, &format!("{PATH}?before={before}")).await;
    foreign.assert_v1_error(400, "invalid_request");
}
