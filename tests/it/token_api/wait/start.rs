//! Where a wait begins, and which match it returns.

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::token::TokenKind;
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{App, EventStream};

use super::super::subjects;
use super::{ADDRESS, look, on_address, subject};

async fn deliver_all(app: &App, subjects: &[&str]) {
    for subject in subjects {
        app.deliver(ADDRESS, subject, "").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_newest_match_without_a_start() {
    let app = App::start().await;
    deliver_all(&app, &["code 1", "code 2", "other"]).await;
    let found = look(&app, &json!({ "match": { "subject": "code" } })).await.expect(200);
    assert_eq!(subject(&found), "code 2");
    assert_eq!(subject(&look(&app, &json!({})).await.expect(200)), "other");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_first_match_that_comes_without_a_start_and_a_match() {
    let app = App::start().await;
    deliver_all(&app, &["other 1"]).await;
    // What the wait finds at first is the newest match, so the mail has to come after its first read. That has its snapshot
    // where it waits for this lock.
    let mut lock = app.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE message").execute(&mut *lock).await.unwrap();
    let body = on_address(&json!({ "match": { "subject": "code" } }));
    let request = app.request(Method::POST, "/v1/wait").live(&app.tenant.live).json(&body);
    let wait = tokio::spawn(request.send());
    eventually("the wait reads the inbox", || async {
        let statement = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '/* scan_inbox */%'";
        (app.count(statement).await > 0).then_some(())
    })
    .await;
    lock.rollback().await.unwrap();
    deliver_all(&app, &["other 2", "code 1", "code 2"]).await;
    let answer = within_deadline("the first match", wait).await.unwrap().expect(200);
    assert_eq!(subject(&answer), "code 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_oldest_match_after_a_cursor_and_the_same_one_again() {
    let app = App::start().await;
    deliver_all(&app, &["code 0"]).await;
    let since = app.cursor_as(&app.tenant.live).await;
    deliver_all(&app, &["other", "code 1", "code 2"]).await;
    let body = json!({ "since": since, "match": { "subject": "code" } });
    for _ in 0..3 {
        assert_eq!(subject(&look(&app, &body).await.expect(200)), "code 1");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_oldest_match_after_a_time() {
    let app = App::start().await;
    deliver_all(&app, &["code 0", "code 1"]).await;
    app.clock.advance(SignedDuration::from_mins(5));
    deliver_all(&app, &["code 2", "code 3"]).await;
    let emails = app.emails(ADDRESS).await;
    let created = |nth: usize| emails[nth]["created_at"].as_str().unwrap();
    let found = async |after: &str| {
        look(&app, &json!({ "after": after, "match": { "subject": "code" } })).await.expect(200)
    };
    let earlier = created(3).parse::<Timestamp>().unwrap() - SignedDuration::from_millis(1);
    assert_eq!(subject(&found(&earlier.to_string()).await), "code 0");
    assert_eq!(subject(&found("-009999-01-03T00:00:00Z").await), "code 0");
    let later = (created(2).parse::<Timestamp>().unwrap() + SignedDuration::from_secs(1)).to_string();
    assert_eq!(subject(&found(&later).await), "code 2");
    let newest = look(&app, &json!({ "after": created(0) })).await;
    assert_eq!(newest.status, 204, "a mail is not after its own time");
    let since = newest.header("x-next-since");
    deliver_all(&app, &["code 4"]).await;
    assert_eq!(subject(&look(&app, &json!({ "since": since })).await.expect(200)), "code 4");
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_cursor_and_time_together() {
    let app = App::start().await;
    let early = app.cursor_as(&app.tenant.live).await;
    deliver_all(&app, &["1"]).await;
    app.clock.advance(SignedDuration::from_mins(5));
    deliver_all(&app, &["2"]).await;
    let late = app.cursor_as(&app.tenant.live).await;
    deliver_all(&app, &["3"]).await;
    let emails = app.emails(ADDRESS).await;
    let first = emails[2]["created_at"].as_str().unwrap();
    assert_eq!(subject(&look(&app, &json!({ "since": early, "after": first })).await.expect(200)), "2");
    assert_eq!(subject(&look(&app, &json!({ "since": late, "after": first })).await.expect(200)), "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn ignores_mail_that_arrives_before_a_time_to_come() {
    let app = App::start().await;
    let body = on_address(&json!({ "after": "2200-01-01T00:00:00Z" }));
    let wait = app.start_mail_wait(&app.tenant.live, &body).await;
    deliver_all(&app, &["1", "2"]).await;
    let second = app.token(&app.tenant, TokenKind::Live).await;
    assert_eq!(app.get_as(&second, &format!("/v1/inbox/{ADDRESS}?count=2")).await.status, 200);
    assert!(!wait.is_finished());
    wait.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn following_the_cursor_misses_nothing_and_repeats_nothing() {
    let app = App::start().await;
    let mut since = app.cursor_as(&app.tenant.live).await;
    let mut met = Vec::new();
    let sent: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    let follow = async {
        while met.len() < 20 {
            let body = on_address(&json!({ "since": since, "match": { "subject": "even" }, "timeout": 1 }));
            let answer = app.wait_for_email(&app.tenant.live, &body).await;
            if answer.status == 204 {
                since = answer.header("x-next-since").to_owned();
                continue;
            }
            let answer = answer.expect(200);
            met.push(subject(&answer).trim_end_matches(" even").to_owned());
            since = answer["next_since"].as_str().unwrap().to_owned();
        }
    };
    let send = async {
        for (number, text) in sent.iter().enumerate() {
            let kind = if number % 2 == 0 { "even" } else { "odd" };
            app.deliver(ADDRESS, &format!("{text} {kind}"), "").await;
        }
    };
    tokio::join!(follow, send);
    assert_eq!(met, sent.into_iter().step_by(2).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn requires_a_start_for_a_domain_and_for_everything() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ours.example").await;
    app.deliver("any@ours.example", "there", "").await;
    for mut body in [json!({ "domain": "ours.example", "timeout": 0 }), json!({ "all": true, "timeout": 0 })]
    {
        app.wait_for_email(&app.tenant.live, &body).await.assert_v1_error(400, "invalid_request");
        body["since"] = json!("0");
        assert_eq!(subject(&app.wait_for_email(&app.tenant.live, &body).await.expect(200)), "there");
        body["since"] = Value::Null;
        body["after"] = json!("2000-01-01T00:00:00Z");
        assert_eq!(subject(&app.wait_for_email(&app.tenant.live, &body).await.expect(200)), "there");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_cursor_of_another_tenant_or_an_altered_one() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let foreign = app.cursor_as(&other.live).await;
    let altered = format!("{}AA", app.cursor_as(&app.tenant.live).await);
    for since in [foreign, altered] {
        look(&app, &json!({ "since": since })).await.assert_v1_error(400, "invalid_request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn begins_with_the_oldest_unexpired_mail_at_zero_on_every_way_to_wait() {
    let app = App::start().await;
    deliver_all(&app, &["expired"]).await;
    app.clock.advance(SignedDuration::from_mins(61));
    deliver_all(&app, &["1", "2", "3"]).await;
    assert_eq!(subject(&look(&app, &json!({ "since": "0" })).await.expect(200)), "1");
    let page = app.get(&format!("/v1/inbox/{ADDRESS}?since=0&limit=2")).await.expect(200);
    assert_eq!(subjects(&page["emails"]), ["2", "1"]);
    let next = page["next_since"].as_str().unwrap();
    let rest = app.get(&format!("/v1/inbox/{ADDRESS}?since={next}")).await.expect(200);
    assert_eq!(subjects(&rest["emails"]), ["3"]);
    let request = app.request(Method::GET, &format!("/v1/sse/addr?address={ADDRESS}&since=0"));
    let mut stream = EventStream::open(request.live(&app.tenant.live)).await;
    for expected in ["1", "2", "3"] {
        let summary: Value = serde_json::from_str(&stream.next().await.data).unwrap();
        assert_eq!(summary["subject"], expected);
    }
    let wait = app.start_long_poll(&app.tenant.live, "/v1/inbox/empty@inbox.localhost?since=0").await;
    app.deliver("empty@inbox.localhost", "first", "").await;
    let first = within_deadline("the first mail", wait).await.unwrap().expect(200);
    assert_eq!(subjects(&first["emails"]), ["first"]);
}
