//! `tempmail system-domain add`, `set`, `default`, `remove`, `list`

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::App;
use tempmail_tests::wait::within_deadline;

use super::{is_answered, keys, worker_leaves};

async fn listed(app: &App) -> Vec<Value> {
    let list = app.tempmail("system-domain list --json").await.json();
    assert_eq!(keys(&list), ["system_domains"]);
    list["system_domains"].as_array().unwrap().clone()
}

/// Names and which is the default, as clients see them.
async fn public(app: &App) -> Vec<(String, bool)> {
    let body = app.request(Method::GET, "/api/domains").send().await.expect(200);
    let domains = body["domains"].as_array().unwrap().iter();
    domains.map(|d| (d["domain"].as_str().unwrap().to_owned(), d["default"].as_bool().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_an_added_domain_at_once() {
    let app = App::start().await;
    let added = app.tempmail("system-domain add second.example --json").await.json();
    let expected = json!({
        "id": added["id"],
        "domain": "second.example",
        "default": false,
        "sort_order": 1,
        "shared_inboxes": true,
        "mailboxes": 0,
        "created_at": added["created_at"],
    });
    assert_eq!(added, expected);
    assert_eq!(listed(&app).await[1], expected);
    let names = [("inbox.localhost".to_owned(), true), ("second.example".to_owned(), false)];
    assert_eq!(public(&app).await, names);
    let config = app.request(Method::GET, "/v1/config").send().await.expect(200);
    assert_eq!(config["system_domains"][1]["domain"], "second.example");
    app.deliver("shared@second.example", "hello", "").await;
    assert_eq!(app.emails("shared@second.example").await[0]["subject"], "hello");
    app.mailbox(None, "own@second.example").await;
    assert_eq!(listed(&app).await[1]["mailboxes"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_names_as_a_labels() {
    let app = App::start().await;
    let added = app.tempmail("system-domain add B\u{fc}cher.Example.").await;
    assert_eq!(added.success(), "added xn--bcher-kva.example");
    app.deliver("a@xn--bcher-kva.example", "hello", "").await;
    for wrong in ["a_b.example", "a..example", "a-.example", "[127.0.0.1]", ""] {
        let misuse = app.tempmail(&format!("system-domain add {wrong}")).await;
        assert!(misuse.usage_error().ends_with(": not a host name"), "{}", misuse.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_add_a_serving_domain_again() {
    let app = App::start().await;
    let refused = app.tempmail("system-domain add inbox.localhost --sort-order 9").await;
    assert_eq!(refused.failure(), "inbox.localhost is already a system domain");
    assert_eq!(listed(&app).await[0]["sort_order"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_domain_that_overlaps_a_custom_domain() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    let refused = async || {
        let equal = app.tempmail("system-domain add ships.example").await;
        let expected = "ships.example can't be a system domain: it is the custom domain of a tenant";
        assert_eq!(equal.failure(), expected);
        for near in ["example", "mail.ships.example", "a.b.ships.example"] {
            let refused = app.tempmail(&format!("system-domain add {near}")).await;
            let expected = format!(
                "{near} can't be a system domain: it overlaps ships.example, the custom domain of a tenant"
            );
            assert_eq!(refused.failure(), expected);
        }
    };
    refused().await;
    sqlx::query("UPDATE domain SET serves = false, verify_status = 'pending' WHERE id = $1")
        .bind(domain)
        .execute(&app.pool)
        .await
        .unwrap();
    refused().await;
    app.tempmail("system-domain add starships.example").await.success();
    assert_eq!(listed(&app).await.len(), 2);
    // One that failed is in nobody's way.
    sqlx::query(
        "UPDATE domain SET verify_status = 'failed', failure_reason = 'verification_timed_out' WHERE id = $1",
    )
    .bind(domain)
    .execute(&app.pool)
    .await
    .unwrap();
    app.tempmail("system-domain add ships.example").await.success();
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_mail_for_mailboxes_only_without_shared_inboxes() {
    let app = App::start().await;
    let added = app.tempmail("system-domain add closed.example --no-shared-inboxes --json").await.json();
    assert_eq!(added["shared_inboxes"], false);
    is_answered(&app, "none@closed.example", "550 5.1.1").await;
    app.get("/v1/inbox/none@closed.example").await.assert_v1_error(404, "not_found");
    let mailbox = app.mailbox(None, "own@closed.example").await;
    app.deliver(&mailbox.address, "hello", "").await;

    let changed = app.tempmail("system-domain set closed.example --shared-inboxes true --json").await.json();
    assert_eq!(changed["shared_inboxes"], true);
    app.deliver("none@closed.example", "hello", "").await;
    app.tempmail("system-domain set closed.example --shared-inboxes false").await.success();
    app.get("/v1/inbox/none@closed.example").await.assert_v1_error(404, "not_found");
    is_answered(&app, "none@closed.example", "550 5.1.1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_only_the_given_settings() {
    let app = App::start().await;
    app.tempmail("system-domain add first.example --sort-order -5").await.success();
    assert_eq!(public(&app).await[0].0, "first.example");
    let changed = app.tempmail("system-domain set first.example --sort-order 7").await;
    assert_eq!(changed.success(), "changed first.example");
    assert_eq!(public(&app).await[1].0, "first.example");
    assert_eq!(listed(&app).await[1]["shared_inboxes"], true);
    assert!(app.tempmail("system-domain set first.example").await.failure().starts_with("nothing to change"));
    let unknown = app.tempmail("system-domain set none.example --sort-order 1").await;
    assert_eq!(unknown.failure(), "there is no system domain none.example");
}

#[tokio::test(flavor = "multi_thread")]
async fn has_one_default_domain() {
    let app = App::start().await;
    app.tempmail("system-domain add second.example").await.success();
    let made = app.tempmail("system-domain default second.example").await;
    assert_eq!(made.success(), "default is now second.example");
    let names = [("inbox.localhost".to_owned(), false), ("second.example".to_owned(), true)];
    assert_eq!(public(&app).await, names);
    let again = app.tempmail("system-domain default second.example --json").await.json();
    assert_eq!(again["default"], true);
    let unknown = app.tempmail("system-domain default none.example").await;
    assert_eq!(unknown.failure(), "there is no system domain none.example");
    assert_eq!(public(&app).await, names);
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_to_remove_the_last_and_the_default_domain() {
    let app = App::start().await;
    let refused = app.tempmail("system-domain remove inbox.localhost").await;
    assert_eq!(refused.failure(), "inbox.localhost is the only system domain: add another one first");
    app.tempmail("system-domain add second.example").await.success();
    let refused = app.tempmail("system-domain remove inbox.localhost").await;
    let expected = "inbox.localhost is the default system domain: make another one the default first \
                    (`tempmail system-domain default`)";
    assert_eq!(refused.failure(), expected);
    let refused = app.tempmail("system-domain remove none.example").await;
    assert_eq!(refused.failure(), "there is no system domain none.example");
    app.custom_domain(&app.tenant, "ships.example").await;
    let refused = app.tempmail("system-domain remove ships.example").await;
    assert_eq!(refused.failure(), "there is no system domain ships.example");
    assert_eq!(listed(&app).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_to_remove_a_domain_with_mailboxes() {
    let app = App::start().await;
    app.tempmail("system-domain add second.example").await.success();
    let mailbox = app.mailbox(None, "one@second.example").await;
    let refused = app.tempmail("system-domain remove second.example").await;
    let expected = "second.example has 1 mailbox: use --delete-mailboxes to delete them with their mail";
    assert_eq!(refused.failure(), expected);
    app.mailbox(Some(&app.tenant.pro), "two@second.example").await;
    let refused = app.tempmail("system-domain remove second.example").await;
    assert!(refused.failure().contains("has 2 mailboxes"), "{}", refused.stderr);
    app.deliver(&mailbox.address, "it still receives", "").await;
    assert_eq!(app.messages(&mailbox).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_removed_domain_on_every_surface() {
    let app = App::start().await;
    app.tempmail("system-domain add second.example").await.success();
    app.deliver("shared@second.example", "hello", "").await;
    let email = app.emails("shared@second.example").await[0]["id"].as_str().unwrap().to_owned();
    let waiting = app.start_long_poll(&app.tenant.live, "/v1/inbox/none@second.example").await;

    assert_eq!(app.tempmail("system-domain remove second.example").await.success(), "removed second.example");
    within_deadline("the open wait ends", waiting).await.unwrap().assert_v1_error(404, "not_found");
    for path in ["/v1/inbox/shared@second.example".to_owned(), format!("/v1/email/{email}")] {
        app.get(&path).await.assert_v1_error(404, "not_found");
    }
    let refused = app.create_mailbox(None, "own@second.example", "correct horse").await;
    refused.assert_api_error(400, "invalid_address");
    for recipient in ["shared@second.example", "postmaster@second.example"] {
        is_answered(&app, recipient, "550 5.7.1").await;
    }
    assert_eq!(public(&app).await.len(), 1);
    let again = app.tempmail("system-domain remove second.example --json").await;
    assert_eq!(again.failure(), "there is no system domain second.example");
}

#[tokio::test(flavor = "multi_thread")]
async fn removes_a_domain_with_its_mailboxes_on_request() {
    let app = App::start().await;
    app.tempmail("system-domain add second.example").await.success();
    let free = app.mailbox(None, "free@second.example").await;
    let pro = app.mailbox(Some(&app.tenant.pro), "pro@second.example").await;
    app.deliver(&free.address, "hello", "").await;
    app.deliver(&pro.address, "hello", "").await;
    app.deliver("other@inbox.localhost", "hello", "").await;
    let removed = app.tempmail("system-domain remove second.example --delete-mailboxes --json").await.json();
    assert_eq!(removed, json!({"domain": "second.example", "removed": true}));
    for mailbox in [&free, &pro] {
        app.get_mailbox(mailbox, "/api/messages").await.assert_api_error(401, "invalid_token");
    }
    worker_leaves(&app, "SELECT count(*) FROM message", 1).await;

    // It serves again, and its addresses are held.
    app.tempmail("system-domain add second.example").await.success();
    app.get_mailbox(&free, "/api/messages").await.assert_api_error(401, "invalid_token");
    for address in ["free@second.example", "pro@second.example"] {
        let refused = app.create_mailbox(None, address, "correct horse").await;
        refused.assert_api_error(409, "address_taken");
        is_answered(&app, address, "550 5.1.1").await;
    }
    app.mailbox(Some(&app.tenant.pro), "pro@second.example").await;
    assert_eq!(listed(&app).await[1]["mailboxes"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_settings_of_a_domain_that_is_added_again() {
    let app = App::start().await;
    app.tempmail("system-domain add second.example --no-shared-inboxes --sort-order 5").await.success();
    let before = listed(&app).await[1].clone();
    app.tempmail("system-domain remove second.example").await.success();
    app.tempmail("system-domain add second.example").await.success();
    assert_eq!(listed(&app).await[1], before);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_domains_as_a_table() {
    let app = App::start().await;
    app.tempmail("system-domain add closed.example --no-shared-inboxes").await.success();
    app.mailbox(None, "own@inbox.localhost").await;
    let text = app.tempmail("system-domain list").await;
    let lines: Vec<Vec<&str>> =
        text.success().lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["DOMAIN", "DEFAULT", "ORDER", "SHARED", "INBOXES", "MAILBOXES"]);
    assert_eq!(lines[1], ["inbox.localhost", "yes", "0", "yes", "1"]);
    assert_eq!(lines[2], ["closed.example", "no", "1", "no", "0"]);
}
