//! `/pro/api/messages`: mail of everything that a tenant owns, and contents of its mailboxes' messages.

mod events;

use futures_util::future::join_all;
use jiff::SignedDuration;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::rows::{copy_newest_message, set_retention};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Response, Tenant};

use super::{assert_time, pro};

const PATH: &str = "/pro/api/messages";

/// Two tenants with mail in a mailbox and under a custom domain each, and a shared inbox and a free mailbox with mail.
struct Owners {
    app: App,
    other: Tenant,
}

impl Owners {
    async fn create() -> Self {
        let app = App::start().await;
        let other = app.another_tenant("lighthouse").await;
        for (tenant, name) in [(&app.tenant, "quay"), (&other, "lamp")] {
            app.mailbox(Some(&tenant.pro), &format!("{name}@inbox.localhost")).await;
            app.custom_domain(tenant, &format!("{name}.example")).await;
            app.deliver(&format!("{name}+tag@inbox.localhost"), &format!("{name} mailbox"), "x").await;
            app.deliver(&format!("any@{name}.example"), &format!("{name} domain"), "x").await;
        }
        app.mailbox(None, "free@inbox.localhost").await;
        app.deliver("free@inbox.localhost", "free", "x").await;
        app.deliver("shared@inbox.localhost", "shared", "x").await;
        Self { app, other }
    }

    /// What is listed for a Pro token, newest first.
    async fn list(&self, pro: &str) -> Vec<Value> {
        let answer = self.app.request(Method::GET, PATH).bearer(pro).send().await.expect(200);
        assert_eq!(answer["page"], 1);
        answer["messages"].as_array().unwrap().clone()
    }
}

fn subjects(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["subject"].as_str().unwrap()).collect()
}

fn id(message: &Value) -> &str {
    message["id"].as_str().unwrap()
}

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
    let mut expected = app.messages(&mailbox).await.remove(0);
    expected["address"] = json!("quay+tag@inbox.localhost");
    expected["account_id"] = json!(mailbox.id);
    assert_eq!(message, &expected, "as its JWT sees it, and whose it is");
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

async fn get_below(app: &App, pro: &str, path: &str) -> Response {
    app.request(Method::GET, &format!("{PATH}/{path}")).bearer(pro).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_a_message_of_a_mailbox_as_its_owner_sees_it() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    app.deliver(&mailbox.address, "hello", "It works.").await;
    let message = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    for (path, own) in [("", ""), ("/source", "/raw")] {
        let as_tenant = get_below(&app, &app.tenant.pro, &format!("{message}{path}")).await;
        let as_owner = app.get_mailbox(&mailbox, &format!("/api/messages/{message}{own}")).await;
        assert_eq!((as_tenant.status, &as_tenant.body), (200, &as_owner.body), "{path}");
        assert_eq!(as_tenant.header("content-type"), as_owner.header("content-type"));
        assert_eq!(as_tenant.header("content-disposition"), as_owner.header("content-disposition"));
    }
    get_below(&app, &app.tenant.pro, &format!("{message}/attachments/0"))
        .await
        .assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_nothing_but_messages_of_the_tenants_mailboxes() {
    let owners = Owners::create().await;
    let app = &owners.app;
    let own = owners.list(&app.tenant.pro).await;
    let foreign = owners.list(&owners.other.pro).await;
    let shared = app.emails("shared@inbox.localhost").await;
    // Of its custom domain, of another tenant, and of a shared inbox.
    for hidden in [id(&own[0]), id(&foreign[0]), id(&foreign[1]), id(&shared[0])] {
        for below in ["", "/source", "/attachments/0"] {
            let answer = get_below(app, &app.tenant.pro, &format!("{hidden}{below}")).await;
            answer.assert_api_error(404, "not_found");
        }
    }
    assert_eq!(get_below(app, &app.tenant.pro, id(&own[1])).await.expect(200)["subject"], "quay mailbox");
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_no_message_of_a_mailbox_that_is_deleted() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    app.deliver(&mailbox.address, "hello", "x").await;
    let message = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/pro/api/accounts/{}", mailbox.id);
    assert_eq!(pro(&app, Method::DELETE, &path).send().await.status, 204);
    get_below(&app, &app.tenant.pro, &message).await.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_one_message_that_the_tenant_owns() {
    let owners = Owners::create().await;
    let app = &owners.app;
    let (own, foreign) = (owners.list(&app.tenant.pro).await, owners.list(&owners.other.pro).await);
    let shared = app.emails("shared@inbox.localhost").await;
    let delete = async |id: &str| {
        app.request(Method::DELETE, &format!("{PATH}/{id}")).bearer(&app.tenant.pro).send().await
    };
    for hidden in [id(&foreign[0]), id(&foreign[1]), id(&shared[0])] {
        delete(hidden).await.assert_api_error(404, "not_found");
    }
    assert_eq!(delete(id(&own[0])).await.status, 204, "also at an address without a mailbox");
    delete(id(&own[0])).await.assert_api_error(404, "not_found");
    assert_eq!(subjects(&owners.list(&app.tenant.pro).await), ["quay mailbox"]);
    assert_eq!(owners.list(&owners.other.pro).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_everything_that_the_tenant_owns_and_nothing_else() {
    let owners = Owners::create().await;
    let app = &owners.app;
    for number in 0..5 {
        app.deliver(&format!("any{number}@quay.example"), "more", "x").await;
    }
    let delete_all = || app.request(Method::DELETE, PATH).bearer(&app.tenant.pro).send();
    assert_eq!(delete_all().await.status, 204);
    assert!(owners.list(&app.tenant.pro).await.is_empty());
    assert_eq!(delete_all().await.status, 204, "there is nothing left");
    assert_eq!(owners.list(&owners.other.pro).await.len(), 2);
    assert_eq!(app.emails("shared@inbox.localhost").await.len(), 1);
    app.worker_pass().await;
    assert_eq!(app.count("SELECT count(*) FROM message").await, 4, "of others");
    app.deliver("quay@inbox.localhost", "later", "x").await;
    assert_eq!(subjects(&owners.list(&app.tenant.pro).await), ["later"]);
}
