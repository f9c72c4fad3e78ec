//! `tempmail tenant`, without `delete`

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{App, CommandOutput, Response, Tenant};

use super::{is_answered, keys};

/// A tenant that the command made, with tokens that the command made.
async fn made(app: &App, name: &str, limits: &str) -> Tenant {
    let created = app.tempmail(&format!("tenant create {name} --json{limits}")).await.json();
    let token =
        async |kind| app.tempmail(&format!("token create {name} --kind {kind}")).await.success().to_owned();
    let id = created["id"].as_str().unwrap().parse().unwrap();
    Tenant { id, live: token("live").await, pro: token("pro").await }
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_tenant_with_the_limits_of_the_pro_plan() {
    let app = App::start().await;
    let created = app.tempmail("tenant create acme --json").await.json();
    let expected = json!({
        "id": created["id"],
        "name": "acme",
        "suspended": false,
        "retention_hours": 72,
        "mailboxes": {"used": 0, "limit": 100},
        "custom_domains": {"used": 0, "limit": 10},
        "webhooks": {"used": 0, "limit": 1},
        "tokens": {"used": 0, "limit": 20},
        "mailbox_bytes": 52_428_800,
        "stored_bytes": 0,
        "created_at": created["created_at"],
    });
    assert_eq!(created, expected);
    assert_eq!(app.tempmail("tenant show acme --json").await.json(), created);
    assert_eq!(created["created_at"].as_str().unwrap().len(), "2026-11-21T10:00:00.123Z".len());
    assert_eq!(app.tempmail("tenant create other").await.success(), "created tenant other");
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_tenant_with_given_limits() {
    let app = App::start().await;
    let limits =
        "--retention-hours 168 --mailboxes 7 --custom-domains 0 --webhooks 3 --tokens 2 --mailbox-bytes 1000";
    let created = app.tempmail(&format!("tenant create acme --json {limits}")).await.json();
    assert_eq!(created["retention_hours"], 168);
    for (limit, of) in [(7, "mailboxes"), (0, "custom_domains"), (3, "webhooks"), (2, "tokens")] {
        assert_eq!(created[of], json!({"used": 0, "limit": limit}), "{of}");
    }
    assert_eq!(created["mailbox_bytes"], 1000);

    let url = app.database().url();
    let environment = [("TEMPMAIL_POSTGRES__URL", url.as_str()), ("TEMPMAIL_RETENTION__PRO_HOURS", "24")];
    let created =
        CommandOutput::run(&["tenant", "create", "configured", "--json"], &environment).await.json();
    assert_eq!(created["retention_hours"], 24, "`retention.pro_hours` is the default");
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_tokens_of_a_new_tenant_at_once() {
    let app = App::start().await;
    app.deliver("shared@inbox.localhost", "hello", "").await;
    let acme = made(&app, "acme", "").await;
    assert_eq!(app.emails_as(&acme.live, "shared@inbox.localhost").await[0]["subject"], "hello");
    let mailbox = app.mailbox(Some(&acme.pro), "own@inbox.localhost").await;
    app.deliver(&mailbox.address, "own", "").await;
    assert_eq!(app.emails_as(&acme.live, &mailbox.address).await[0]["subject"], "own");
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_the_usage_of_a_tenant() {
    let app = App::start().await;
    let acme = made(&app, "acme", "").await;
    let mailbox = app.mailbox(Some(&acme.pro), "own@inbox.localhost").await;
    app.custom_domain(&acme, "ships.example").await;
    app.deliver(&mailbox.address, "own", "").await;
    let on_disk = app.count("SELECT stored_bytes::bigint + message_row_bytes() FROM raw").await;
    assert_eq!(create_webhook(&app, &acme).await.status, 201);
    let shown = app.tempmail("tenant show acme --json").await.json();
    assert_eq!(shown["stored_bytes"], on_disk);
    for (used, of) in [(1, "mailboxes"), (1, "custom_domains"), (1, "webhooks"), (2, "tokens")] {
        assert_eq!(shown[of]["used"], used, "{of}");
    }
    let text = app.tempmail("tenant show acme").await;
    for line in
        ["name            acme", "state           active", "retention       72 h", "mailboxes       1 of 100"]
    {
        assert!(text.success().lines().any(|there| there == line), "{line} is not in {}", text.stdout);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_tenants_by_name() {
    let app = App::start().await;
    app.tempmail("tenant create acme").await.success();
    let list = app.tempmail("tenant list --json").await.json();
    assert_eq!(keys(&list), ["tenants"]);
    let tenants = list["tenants"].as_array().unwrap();
    let names: Vec<&str> = tenants.iter().map(|tenant| tenant["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["acme", "harbour", "platform"]);
    assert_eq!(tenants[0], app.tempmail("tenant show acme --json").await.json());

    let text = app.tempmail("tenant list").await;
    let lines: Vec<Vec<&str>> = text
        .success()
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(
        lines[0],
        ["NAME", "STATE", "RETENTION", "MAILBOXES", "DOMAINS", "WEBHOOKS", "TOKENS", "BYTES"]
    );
    assert_eq!(lines[2], ["harbour", "active", "72 h", "0 of 100", "0 of 10", "0 of 1", "2 of 20", "0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_name_that_is_taken() {
    let app = App::start().await;
    for name in ["harbour", "platform"] {
        let refused = app.tempmail(&format!("tenant create {name}")).await;
        assert_eq!(refused.failure(), format!("there is already a tenant {name}"));
    }
    assert_eq!(app.count("SELECT count(*) FROM tenant").await, 2);
}

/// Products of these numbers are computed for each mail.
#[tokio::test(flavor = "multi_thread")]
async fn refuses_limits_above_their_maximum() {
    let app = App::start().await;
    for (option, most) in [
        ("mailboxes", 1_000_000_i64),
        ("custom-domains", 100_000),
        ("webhooks", 100),
        ("tokens", 100_000),
        ("mailbox-bytes", 1 << 40),
    ] {
        let refused = app.tempmail(&format!("tenant set harbour --{option} {}", most + 1)).await;
        assert_eq!(refused.code, Some(2), "{option}: {}", refused.stderr);
        app.tempmail(&format!("tenant set harbour --{option} {most}")).await.success();
    }
    let mailbox = app.mailbox(Some(&app.tenant.pro), "own@inbox.localhost").await;
    app.deliver(&mailbox.address, "with the largest limits", "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_rfc_1123_labels_as_names() {
    let app = App::start().await;
    let longest = "x".repeat(63);
    for name in ["a", "0", "a-1", &longest] {
        app.tempmail(&format!("tenant create {name}")).await.success();
    }
    let too_long = "x".repeat(64);
    for name in ["Acme", "a.b", "a_b", "a-", "@x", "\u{fc}ber", "", &too_long] {
        let misuse = app.tempmail(&format!("tenant create {name}")).await;
        assert!(misuse.usage_error().contains("1 to 63 of a-z, 0-9 and `-`"), "{}", misuse.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn explains_invalid_values() {
    let app = App::start().await;
    for command in ["tenant create acme", "tenant set harbour"] {
        for hours in ["0", "2", "-1", "73", "721", "many", "70000"] {
            let misuse = app.tempmail(&format!("{command} --retention-hours {hours}")).await;
            assert!(
                misuse.usage_error().ends_with("retention is 1, 6, 24, 72, 168 or 720 hours"),
                "{}",
                misuse.stderr
            );
        }
        for limit in ["mailboxes", "custom-domains", "webhooks", "tokens", "mailbox-bytes"] {
            for value in ["-1", "1.5", "many", "99999999999999999999"] {
                let misuse = app.tempmail(&format!("{command} --{limit} {value}")).await;
                assert!(misuse.usage_error().contains(&format!("--{limit}")), "{}", misuse.stderr);
            }
        }
        app.tempmail(&format!("{command} --mailbox-bytes 0")).await.usage_error();
    }
    assert_eq!(app.count("SELECT count(*) FROM tenant").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_an_unknown_tenant() {
    let app = App::start().await;
    for command in [
        "tenant set acme --tokens 1",
        "tenant suspend acme",
        "tenant resume acme",
        "tenant delete acme --yes",
        "tenant show acme",
        "token create acme --kind live",
        "token revoke acme abcd",
        "token list acme",
    ] {
        assert_eq!(app.tempmail(command).await.failure(), "there is no tenant acme", "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_only_the_given_settings() {
    let app = App::start().await;
    let mut expected = app.tempmail("tenant show harbour --json").await.json();
    for (option, key, value) in [
        ("--retention-hours 6", "/retention_hours", 6),
        ("--mailboxes 3", "/mailboxes/limit", 3),
        ("--custom-domains 0", "/custom_domains/limit", 0),
        ("--webhooks 2", "/webhooks/limit", 2),
        ("--tokens 5", "/tokens/limit", 5),
        ("--mailbox-bytes 1", "/mailbox_bytes", 1),
    ] {
        *expected.pointer_mut(key).unwrap() = json!(value);
        let changed = app.tempmail(&format!("tenant set harbour {option} --json")).await.json();
        assert_eq!(changed, expected, "{option}");
    }
    assert_eq!(
        app.tempmail("tenant set harbour --tokens 6 --webhooks 0").await.success(),
        "changed tenant harbour"
    );
    assert!(app.tempmail("tenant set harbour").await.failure().starts_with("nothing to change"));
}

#[tokio::test(flavor = "multi_thread")]
async fn applies_new_limits_to_new_rows() {
    let app = App::start().await;
    let acme = made(&app, "acme", "").await;
    app.mailbox(Some(&acme.pro), "first@inbox.localhost").await;
    app.tempmail("tenant set acme --mailboxes 1 --webhooks 0 --tokens 2").await.success();
    let refused = app.create_mailbox(Some(&acme.pro), "second@inbox.localhost", "correct horse").await;
    refused.assert_api_error(403, "account_limit_reached");
    create_webhook(&app, &acme).await.assert_api_error(403, "webhook_limit_reached");
    let token = json!({"name": "third"});
    let refused = app.request(Method::POST, "/pro/api/tokens").bearer(&acme.pro).json(&token).send().await;
    refused.assert_api_error(403, "token_limit_reached");

    app.tempmail("tenant set acme --mailboxes 2 --mailbox-bytes 4000").await.success();
    app.mailbox(Some(&acme.pro), "second@inbox.localhost").await;
    let body = app.request(Method::GET, "/pro/api/accounts").bearer(&acme.pro).send().await.expect(200);
    let quotas: Vec<&Value> =
        body["accounts"].as_array().unwrap().iter().map(|account| &account["quota"]).collect();
    assert_eq!(quotas, [4000, 52_428_800], "newest first");
}

#[tokio::test(flavor = "multi_thread")]
async fn applies_a_new_retention_to_new_mail() {
    let app = App::start().await;
    let acme = made(&app, "acme", "").await;
    let mailbox = app.mailbox(Some(&acme.pro), "own@inbox.localhost").await;
    app.deliver(&mailbox.address, "kept for 72 h", "").await;
    app.tempmail("tenant set acme --retention-hours 6").await.success();
    // No pass of the worker between: the partition is made by the mail that needs it.
    app.deliver(&mailbox.address, "kept for 6 h", "").await;
    let subjects = async || -> Vec<String> {
        let emails = app.emails_as(&acme.live, &mailbox.address).await;
        emails.iter().map(|email| email["subject"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(subjects().await, ["kept for 6 h", "kept for 72 h"]);
    assert_eq!(app.messages(&mailbox).await.len(), 2);
    app.tempmail("tenant set acme --retention-hours 72").await.success();
    app.tempmail("tenant set acme --retention-hours 6").await.success();
    assert_eq!(subjects().await, ["kept for 6 h", "kept for 72 h"], "each is shown once");

    app.advance_hours(7);
    app.worker_pass().await;
    assert_eq!(subjects().await, ["kept for 72 h"]);
}

/// Tries to make a webhook.
async fn create_webhook(app: &App, tenant: &Tenant) -> Response {
    let body = json!({"url": "https://hooks.example/", "events": ["email.received"]});
    app.request(Method::POST, "/pro/api/webhooks").bearer(&tenant.pro).json(&body).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_suspended_tenant_on_every_surface() {
    let app = App::start().await;
    let acme = app.another_tenant("acme").await;
    let mailbox = app.mailbox(Some(&acme.pro), "own@inbox.localhost").await;
    app.custom_domain(&acme, "ships.example").await;
    app.deliver(&mailbox.address, "before", "").await;
    let waiting = app.start_long_poll(&acme.live, "/v1/inbox/none@inbox.localhost").await;

    assert_eq!(app.tempmail("tenant suspend acme").await.success(), "suspended tenant acme");
    within_deadline("the open wait ends", waiting).await.unwrap().assert_v1_error(403, "account_disabled");
    // `matrix` presents every credential of a suspended tenant.
    let sign_in = || app.sign_in(&mailbox.address, &mailbox.password);
    sign_in().await.assert_api_error(403, "account_disabled");
    let session = json!({"token": acme.pro});
    let open = app.request(Method::POST, "/pro/api/session").json(&session).send().await;
    open.assert_api_error(403, "account_disabled");
    for recipient in ["own@inbox.localhost", "own+tag@inbox.localhost", "any@ships.example"] {
        is_answered(&app, recipient, "550 5.2.1").await;
    }
    assert_eq!(app.get("/v1/inbox/own@inbox.localhost").await.status, 404, "to others it is as before");
    app.deliver("none@inbox.localhost", "others go on", "").await;
    assert_eq!(app.emails("none@inbox.localhost").await.len(), 1);

    assert_eq!(app.tempmail("tenant resume acme").await.success(), "resumed tenant acme");
    assert_eq!(app.emails_as(&acme.live, &mailbox.address).await[0]["subject"], "before");
    assert_eq!(app.messages(&mailbox).await.len(), 1);
    assert_eq!(sign_in().await.status, 200);
    assert_eq!(app.request(Method::GET, "/pro/api/accounts").bearer(&acme.pro).send().await.status, 200);
    app.deliver("any@ships.example", "after", "").await;
    assert_eq!(app.emails_as(&acme.live, "any@ships.example").await[0]["subject"], "after");
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_a_suspended_tenant_and_creates_no_token_for_it() {
    let app = App::start().await;
    assert_eq!(app.tempmail("tenant suspend harbour --json").await.json()["suspended"], true);
    assert_eq!(app.tempmail("tenant suspend harbour --json").await.json()["suspended"], true, "again");
    assert!(app.tempmail("tenant list").await.success().contains("harbour   suspended"));
    let refused = app.tempmail("token create harbour --kind live").await;
    assert_eq!(refused.failure(), "the tenant harbour is suspended: resume it first");
    assert_eq!(app.tempmail("tenant resume harbour --json").await.json()["suspended"], false);
    app.tempmail("token create harbour --kind live").await.success();
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_to_suspend_platform() {
    let app = App::start().await;
    let refusal = app.tempmail("tenant suspend platform").await;
    assert!(refusal.failure().starts_with("the tenant platform can't be suspended"), "{}", refusal.stderr);
    app.deliver("postmaster@inbox.localhost", "help", "").await;
    let token = app.tempmail("token create platform --kind live").await;
    assert_eq!(app.emails_as(token.success(), "postmaster@inbox.localhost").await[0]["subject"], "help");
}
