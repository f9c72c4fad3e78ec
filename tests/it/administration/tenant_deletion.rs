//! `tempmail tenant delete`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{App, Tenant};

use super::{is_answered, worker_leaves};

const BOX: &str = "own@inbox.localhost";
const UNDER_DOMAIN: &str = "any@ships.example";

async fn create(app: &App, pro: Option<&str>, address: &str) -> u16 {
    app.create_mailbox(pro, address, "correct horse").await.status
}

/// The tenant `acme` with a mailbox, a custom domain, and mail in both.
async fn with_mail(app: &App) -> Tenant {
    let acme = app.another_tenant("acme").await;
    app.mailbox(Some(&acme.pro), BOX).await;
    app.custom_domain(&acme, "ships.example").await;
    app.deliver(BOX, "theirs", "").await;
    app.deliver(UNDER_DOMAIN, "theirs", "").await;
    acme
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_nothing_without_yes() {
    let app = App::start().await;
    let acme = with_mail(&app).await;
    let refusal = app.tempmail("tenant delete acme").await;
    let expected = "this would permanently delete the tenant acme with 1 mailbox, 1 custom domain, 0 webhooks, \
                    2 tokens and all mail: confirm with --yes";
    assert_eq!(refusal.failure(), expected);
    assert_eq!(app.emails_as(&acme.live, BOX).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn prints_what_was_deleted() {
    let app = App::start().await;
    let acme = app.another_tenant("acme").await;
    let deleted = app.tempmail("tenant delete acme --yes --json").await.json();
    assert_eq!(deleted, json!({"id": acme.id.to_string(), "name": "acme", "deleted": true}));
    assert_eq!(app.tempmail("tenant delete acme --yes").await.failure(), "there is no tenant acme");
    assert_eq!(app.tempmail("tenant delete harbour --yes").await.success(), "deleted tenant harbour");
    let left = app.tempmail("tenant list --json").await.json();
    assert_eq!(left["tenants"].as_array().unwrap().len(), 1, "{left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_to_delete_platform() {
    let app = App::start().await;
    let refusal = app.tempmail("tenant delete platform --yes").await;
    assert!(refusal.failure().starts_with("the tenant platform can't be deleted"), "{}", refusal.stderr);
}

/// All mail waits for the row of the stream: a deletion takes it last, whatever there is to delete.
#[tokio::test(flavor = "multi_thread")]
async fn accepts_mail_of_others_while_a_tenant_is_deleted() {
    let app = App::start().await;
    with_mail(&app).await;
    let mut held = app.pool.begin().await.unwrap();
    let last =
        "SELECT b.id FROM mailbox b JOIN tenant t ON t.id = b.tenant WHERE t.name = 'acme' FOR UPDATE OF b";
    sqlx::query(last).execute(&mut *held).await.unwrap();
    let deletion = app.tempmail("tenant delete acme --yes");
    let meanwhile = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%remove_tenant%'";
        eventually("the deletion waits for a mailbox", || async {
            (app.count(waiting).await > 0).then_some(())
        })
        .await;
        app.deliver("shared@inbox.localhost", "meanwhile", "").await;
        held.rollback().await.unwrap();
    };
    let (deleted, ()) = tokio::join!(deletion, meanwhile);
    assert_eq!(deleted.success(), "deleted tenant acme");
    assert_eq!(app.emails("shared@inbox.localhost").await[0]["subject"], "meanwhile");
    worker_leaves(&app, "SELECT count(*) FROM message WHERE owner_kind <> 0", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_everything_of_a_deleted_tenant_at_once() {
    let app = App::start().await;
    let acme = with_mail(&app).await;
    let email = app.emails_as(&acme.live, BOX).await[0]["id"].as_str().unwrap().to_owned();
    let waiting = app.start_long_poll(&acme.live, "/v1/inbox/none@inbox.localhost").await;

    app.tempmail("tenant delete acme --yes").await.success();
    // `realtime::revocation` has a JWT and a session.
    for pro in [&acme.pro, &acme.live] {
        let refused = app.create_mailbox(Some(pro), "more@inbox.localhost", "correct horse").await;
        refused.assert_api_error(401, "invalid_token");
    }
    app.sign_in(BOX, "correct horse").await.assert_api_error(401, "invalid_credentials");
    for path in
        [format!("/v1/inbox/{BOX}"), format!("/v1/inbox/{UNDER_DOMAIN}"), format!("/v1/email/{email}")]
    {
        app.get(&path).await.assert_v1_error(404, "not_found");
    }
    within_deadline("the open wait ends", waiting).await.unwrap().assert_v1_error(401, "invalid_token");
    is_answered(&app, BOX, "550 5.1.1").await;
    is_answered(&app, "own+tag@inbox.localhost", "550 5.1.1").await;
    is_answered(&app, UNDER_DOMAIN, "550 5.7.1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gives_a_new_tenant_nothing_of_a_deleted_one_of_its_name() {
    let app = App::start().await;
    let acme = with_mail(&app).await;
    app.tempmail("tenant suspend acme").await.success();
    app.tempmail("tenant delete acme --yes").await.success();
    let created = app.tempmail("tenant create acme --json").await.json();
    assert_ne!(created["id"], acme.id.to_string());
    assert_eq!((&created["suspended"], &created["stored_bytes"]), (&false.into(), &0.into()));
    for of in ["mailboxes", "custom_domains", "webhooks", "tokens"] {
        assert_eq!(created[of]["used"], 0, "{of}");
    }
    let live = app.tempmail("token create acme --kind live").await;
    let pro = app.tempmail("token create acme --kind pro").await;
    app.get_as(live.success(), &format!("/v1/inbox/{BOX}")).await.assert_v1_error(404, "not_found");
    app.get_as(live.success(), &format!("/v1/inbox/{UNDER_DOMAIN}")).await.assert_v1_error(404, "not_found");
    let body = app.request(Method::GET, "/pro/api/accounts").bearer(pro.success()).send().await.expect(200);
    assert_eq!(body["accounts"], json!([]));
    let refused = app.create_mailbox(Some(pro.success()), BOX, "correct horse").await;
    refused.assert_api_error(409, "address_taken");
    assert_eq!(app.tempmail("token list acme --json").await.json()["tokens"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_the_addresses_of_a_deleted_tenant() {
    let app = App::start().await;
    let acme = with_mail(&app).await;
    // One that was removed before is held for its tenant, until there is none.
    let removed = app.mailbox(Some(&acme.pro), "former@inbox.localhost").await;
    app.delete_mailbox(&removed).await;
    app.tempmail("tenant delete acme --yes").await.success();
    for _ in 0..2 {
        for address in [BOX, "former@inbox.localhost"] {
            for pro in [None, Some(app.tenant.pro.as_str())] {
                let refused = app.create_mailbox(pro, address, "correct horse").await;
                refused.assert_api_error(409, "address_taken");
            }
            app.get(&format!("/v1/inbox/{address}")).await.assert_v1_error(404, "not_found");
            is_answered(&app, address, "550 5.1.1").await;
        }
        // The rows outlive the tenant's.
        worker_leaves(&app, "SELECT count(*) FROM tenant WHERE removed_at IS NOT NULL", 0).await;
    }
    app.advance_hours(24 * 31 + 1);
    app.worker_pass().await;
    assert_eq!(create(&app, None, BOX).await, 201);
    assert_eq!(create(&app, Some(&app.tenant.pro), "former@inbox.localhost").await, 201);
    assert_eq!(app.count("SELECT count(*) FROM message").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_the_mail_and_then_the_row_of_a_deleted_tenant() {
    let app = App::start().await;
    let acme = with_mail(&app).await;
    app.mailbox(Some(&acme.pro), "box@ships.example").await;
    app.deliver("box@ships.example", "theirs", "").await;
    let body = json!({"url": "https://hooks.example/", "events": ["email.received"]});
    let made = app.request(Method::POST, "/pro/api/webhooks").bearer(&acme.pro).json(&body).send().await;
    assert_eq!(made.status, 201);
    app.deliver("shared@inbox.localhost", "of nobody", "").await;
    app.tempmail("tenant delete acme --yes").await.success();
    assert_eq!(app.count("SELECT count(*) FROM webhook").await, 0);
    assert_eq!(app.count("SELECT count(*) FROM api_token").await, 2, "those of the other tenant");

    worker_leaves(&app, "SELECT count(*) FROM message", 1).await;
    assert_eq!(app.count("SELECT count(*) FROM raw").await, 1);
    let whole = "SELECT sum(bytes)::bigint FROM message_partition";
    let of_one = "SELECT stored_bytes::bigint + message_row_bytes() FROM raw";
    assert_eq!(app.count(whole).await, app.count(of_one).await);
    worker_leaves(&app, "SELECT count(*) FROM tenant", 2).await;
    assert_eq!(app.count("SELECT count(*) FROM domain WHERE tenant IS NOT NULL").await, 0);
    assert_eq!(app.count("SELECT count(*) FROM purge").await, 0);
    assert_eq!(app.emails("shared@inbox.localhost").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_creation_that_waited_for_the_deletion() {
    let app = App::start().await;
    let acme = app.another_tenant("acme").await;
    let mut held = app.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM tenant WHERE id = $1 FOR UPDATE")
        .bind(acme.id)
        .execute(&mut *held)
        .await
        .unwrap();
    let waiting = async |count| {
        // For the row: the worker's loops may wait for a lock of their own.
        let statement = "SELECT count(*) FROM pg_stat_activity
                         WHERE datname = current_database() AND wait_event IN ('transactionid', 'tuple')";
        eventually("it waits", || async { (app.count(statement).await == count).then_some(()) }).await;
    };
    let delete = app.tempmail("tenant delete acme --yes");
    let others = async {
        waiting(1).await;
        let token = json!({"name": "late"});
        let creations = async {
            tokio::join!(
                app.create_mailbox(Some(&acme.pro), "late@inbox.localhost", "correct horse"),
                app.request(Method::POST, "/pro/api/tokens").bearer(&acme.pro).json(&token).send(),
            )
        };
        let release = async {
            waiting(3).await;
            held.rollback().await.unwrap();
        };
        tokio::join!(creations, release).0
    };
    let (deleted, (mailbox, token)) = tokio::join!(delete, others);
    deleted.success();
    mailbox.assert_api_error(403, "account_disabled");
    token.assert_api_error(403, "account_disabled");
    assert_eq!(app.count("SELECT count(*) FROM mailbox").await, 0);
}
