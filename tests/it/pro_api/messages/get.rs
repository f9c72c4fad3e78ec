//! `GET /pro/api/messages`

use futures_util::future::join_all;
use jiff::SignedDuration;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::App;
use tempmail_tests::rows::{copy_newest_message, set_retention};
use tempmail_tests::wait::eventually;

use super::{Owners, PATH, id, subjects};
use crate::pro_api::{assert_time, pro};

#[tokio::test(flavor = "multi_thread")]
async fn lists_what_the_tenant_owns_and_nothing_else() {
    let owners = Owners::create().await;
    let (own, others) = (owners.list(&owners.app.tenant.pro).await, owners.list(&owners.other.pro).await);
    assert_eq!(subjects(&own), ["quay domain", "quay mailbox"]);
    assert_eq!(subjects(&others), ["lamp domain", "lamp mailbox"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_messages_with_the_documented_fields() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    app.custom_domain(&app.tenant, "quay.example").await;
    app.deliver("any@quay.example", "domain", "x").await;
    app.deliver("quay+tag@inbox.localhost", "mailbox", "Hello").await;
    let answer = pro(&app, Method::GET, PATH).send().await.expect(200);
    let message = &answer["messages"][0];
    assert_time(&message["created_at"]);
    let expected = json!({
        "id": message["id"], "address": "quay+tag@inbox.localhost", "account_id": mailbox.id.to_string(),
        "sender": "ada@client.example", "from": "Ada <ada@client.example>", "subject": "mailbox",
        "preview_text": "Hello", "size": message["size"], "created_at": message["created_at"], "is_read": false,
    });
    assert_eq!(message, &expected);
    assert_eq!(answer["messages"][1]["account_id"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_by_number_and_before_a_message() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    for number in 0..31 {
        app.deliver("quay@inbox.localhost", &format!("mail {number}"), "x").await;
    }
    let list = async |query: &str| {
        let answer = pro(&app, Method::GET, &format!("{PATH}?{query}")).send().await.expect(200);
        answer["messages"].as_array().unwrap().clone()
    };
    let (first, second) = (list("").await, list("page=2").await);
    assert_eq!((first.len(), subjects(&second)), (30, vec!["mail 0"]));
    assert_eq!(list(&format!("before={}", id(&first[29]))).await, second);
    let owners = Owners::create().await;
    let foreign = owners.list(&owners.other.pro).await;
    let path = format!("{PATH}?before={}", id(&foreign[0]));
    pro(&owners.app, Method::GET, &path).send().await.assert_api_error(404, "not_found");
    pro(&app, Method::GET, &format!("{PATH}?before=x")).send().await.assert_api_error(400, "invalid_request");
    app.advance_hours(73);
    let path = format!("{PATH}?before={}", id(&first[0]));
    pro(&app, Method::GET, &path).send().await.assert_api_error(410, "email_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_out_what_is_expired_or_not_served() {
    let owners = Owners::create().await;
    let app = &owners.app;
    let domain = sqlx::query_scalar("SELECT id FROM domain WHERE name = 'quay.example'");
    app.end_verification(domain.fetch_one(&app.pool).await.unwrap()).await;
    assert_eq!(subjects(&owners.list(&app.tenant.pro).await), ["quay mailbox"]);
    app.clock.advance(SignedDuration::from_hours(73));
    assert!(owners.list(&app.tenant.pro).await.is_empty());
}

/// Also while a purge is not carried out, and with messages of two classes.
#[tokio::test(flavor = "multi_thread")]
async fn pages_have_30_messages_beside_hidden_ones() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    let domain = app.custom_domain(&app.tenant, "quay.example").await;
    for number in 0..31 {
        set_retention(&app.pool, app.tenant.id, [24, 72][number % 2]).await;
        for address in ["quay@inbox.localhost", "quay+tag@inbox.localhost", "any@quay.example"] {
            app.deliver(address, &format!("{number}"), "x").await;
        }
    }
    app.end_verification(domain).await;
    // The worker, which deletes what is cleared, waits for these locks.
    let mut held = app.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM raw FOR UPDATE").execute(&mut *held).await.unwrap();
    assert_eq!(app.delete("/v1/inbox/quay%2Btag@inbox.localhost").await.status, 204);

    let newest_first: Vec<String> = (0..31).rev().map(|number| number.to_string()).collect();
    for path in [PATH, &format!("/pro/api/accounts/{}/messages", mailbox.id)] {
        for (page, expected) in [(1, &newest_first[..30]), (2, &newest_first[30..]), (3, &[])] {
            let answer = pro(&app, Method::GET, &format!("{path}?page={page}")).send().await.expect(200);
            assert_eq!(subjects(answer["messages"].as_array().unwrap()), expected, "{path}, page {page}");
        }
    }
    let left = "SELECT count(*) FROM message WHERE address LIKE '%+tag@%' OR owner_kind = 2";
    assert_eq!(app.count(left).await, 62, "hidden, and not deleted");
    held.rollback().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_far_back_begin_after_all_before_them() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    app.deliver("quay@inbox.localhost", "oldest", "x").await;
    let oldest = app.messages(&mailbox).await[0]["id"].clone();
    copy_newest_message(&app.pool, "quay@inbox.localhost", 600).await;
    for path in [PATH, &format!("/pro/api/accounts/{}/messages", mailbox.id)] {
        let list = async |query: &str| {
            let answer = pro(&app, Method::GET, &format!("{path}?{query}")).send().await.expect(200);
            answer["messages"].as_array().unwrap().clone()
        };
        let (page, last) = (list("page=20").await, list("page=21").await);
        assert_eq!((page.len(), last.len(), &last[0]["id"]), (30, 1, &oldest), "{path}");
        assert_eq!(list(&format!("before={}", id(&page[29]))).await, last, "{path}");
        assert!(list("page=22").await.is_empty(), "{path}");
    }
}

/// What one tenant lists at once leaves connections and cores to others, and to its own first pages.
#[tokio::test(flavor = "multi_thread")]
async fn makes_long_reads_of_a_tenant_one_at_a_time() {
    let app = App::builder().config(|config| config.postgres.pool = 12).start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    let other = app.another_tenant("lighthouse").await;
    let mut lock = app.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE message, usage").execute(&mut *lock).await.unwrap();

    let list = async |token: &str, path: String| {
        app.request(Method::GET, &path).bearer(token).send().await.expect(200);
    };
    let waiting = async |statement: &str| {
        let count = "SELECT count(*) FROM pg_stat_activity
                      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1";
        let count = sqlx::query_scalar::<_, i64>(count).bind(format!("/* {statement} */%"));
        count.fetch_one(&app.pool).await.unwrap()
    };
    let of_mailbox = (2..9).map(|page| format!("/pro/api/accounts/{}/messages?page={page}", mailbox.id));
    let later_pages = join_all(of_mailbox.map(|path| list(&app.tenant.pro, path)));
    let beside = async {
        eventually("a later page waits for the lock", || async {
            (waiting("skip_mailbox_messages").await >= 1).then_some(())
        })
        .await;
        let mailboxes = list(&app.tenant.pro, "/pro/api/accounts".to_owned());
        let later_page = list(&app.tenant.pro, format!("{PATH}?page=2"));
        let first_page = list(&app.tenant.pro, PATH.to_owned());
        let others_page = list(&other.pro, format!("{PATH}?page=2"));
        let unlocked = async {
            eventually("pages beside it wait for the lock", || async {
                let others = (waiting("list_tenant_messages").await, waiting("skip_tenant_messages").await);
                (others.0 >= 1 && others.1 >= 1).then_some(())
            })
            .await;
            assert_eq!(waiting("skip_mailbox_messages").await, 1);
            assert_eq!(waiting("skip_tenant_messages").await, 1, "of the other tenant");
            assert_eq!(waiting("list_tenant_mailboxes").await, 0);
            lock.rollback().await.unwrap();
        };
        tokio::join!(mailboxes, later_page, first_page, others_page, unlocked);
    };
    tokio::join!(later_pages, beside);
}
