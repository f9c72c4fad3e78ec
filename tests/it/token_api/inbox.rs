//! `GET /v1/inbox/<address>`: the long-poll, its cursor `next_since`, concurrent waits and the rate of requests.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_model::token::TokenKind;
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{App, rows};
use tokio::task::JoinHandle;

use super::subjects;

/// Longest time for which a request waits.
const HOLD: Duration = Duration::from_secs(25);

const PATH: &str = "/v1/inbox/ship@inbox.localhost";

const ADDRESS: &str = "ship@inbox.localhost";

#[tokio::test(flavor = "multi_thread")]
async fn returns_when_mail_arrives() {
    let app = App::start().await;
    let blocked = app.start_long_poll(&app.tenant.live, PATH).await;
    app.deliver(ADDRESS, "Your code", "Your code is 4711.").await;

    let answer = blocked.await.unwrap().expect(200);
    let email = &answer["emails"][0];
    assert_eq!(answer["emails"].as_array().unwrap().len(), 1);
    assert!(answer["next_since"].is_string());
    assert_eq!(email["from_email"], "ada@client.example");
    assert_eq!(email["subject"], "Your code");
    assert_eq!(email["preview_text"], "Your code is 4711.");
    assert_eq!(email["address"], ADDRESS);
    let created = email["created_at"].as_str().unwrap();
    assert_eq!((created.len(), &created[19..20], &created[23..]), (24, ".", "Z"), "{created}");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_mail_from_before_the_request_at_once() {
    let app = App::start().await;
    app.deliver(ADDRESS, "early", "").await;
    let answer = app.get(PATH).await.expect(200);
    assert_eq!(subjects(&answer["emails"]), ["early"]);
    let again = app.get(PATH).await.expect(200);
    assert_eq!(subjects(&again["emails"]), ["early"], "without a cursor nothing is consumed");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_newest_mails_without_since() {
    let app = App::start().await;
    for i in 1..=5 {
        app.deliver(ADDRESS, &format!("{i}"), "").await;
    }
    let answer = app.get(&format!("{PATH}?limit=3")).await.expect(200);
    assert_eq!(subjects(&answer["emails"]), ["5", "4", "3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_oldest_mails_after_since_newest_first() {
    let app = App::start().await;
    app.deliver(ADDRESS, "0", "").await;
    let mut since = app.get(PATH).await.expect(200)["next_since"].clone();
    for i in 1..=5 {
        app.deliver(ADDRESS, &format!("{i}"), "").await;
    }
    for expected in [vec!["2", "1"], vec!["4", "3"], vec!["5"]] {
        let path = format!("{PATH}?limit=2&since={}", since.as_str().unwrap());
        let answer = app.get(&path).await.expect(200);
        assert_eq!(subjects(&answer["emails"]), expected);
        since = answer["next_since"].clone();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn caps_count_and_limit_at_50() {
    let app = App::start().await;
    for i in 1..=51 {
        app.deliver(ADDRESS, &format!("{i}"), "").await;
    }
    let answer = app.get(&format!("{PATH}?count=1000&limit=1000")).await.expect(200);
    assert_eq!(answer["emails"].as_array().unwrap().len(), 50);
    assert_eq!(answer["emails"][0]["subject"], "51");
    let default = app.get(PATH).await.expect(200);
    assert_eq!(default["emails"].as_array().unwrap().len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_by_case_insensitive_substrings_of_from_and_subject() {
    let app = App::start().await;
    app.deliver(ADDRESS, "Your CODE is here", "").await;
    app.deliver(ADDRESS, "Invoice", "").await;
    app.deliver(ADDRESS, "Re\u{301}sume\u{301}", "").await;
    for (query, expected) in [
        ("subject=R%C3%89SUM%C3%89", vec!["Re\u{301}sume\u{301}"]),
        ("subject=code", vec!["Your CODE is here"]),
        ("subject=INVOICE", vec!["Invoice"]),
        ("from=ADA%20%3Cada", vec!["Re\u{301}sume\u{301}", "Invoice", "Your CODE is here"]),
        ("from=client.EXAMPLE&subject=voice", vec!["Invoice"]),
    ] {
        let answer = app.get(&format!("{PATH}?{query}")).await.expect(200);
        assert_eq!(subjects(&answer["emails"]), expected, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn treats_sql_wildcards_in_filters_as_plain_characters() {
    let app = App::start().await;
    app.deliver(ADDRESS, "plain", "").await;
    app.deliver(ADDRESS, "100% of a_b\\c", "").await;
    for query in ["subject=%25", "subject=_", "subject=a_b", "subject=%5C", "subject=100%25%20of"] {
        let answer = app.get(&format!("{PATH}?{query}")).await.expect(200);
        assert_eq!(subjects(&answer["emails"]), ["100% of a_b\\c"], "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn skips_mail_that_does_not_match_the_filter() {
    let app = App::start().await;
    let blocked = app.start_long_poll(&app.tenant.live, &format!("{PATH}?subject=wanted")).await;
    app.deliver(ADDRESS, "other", "").await;
    app.deliver(ADDRESS, "the WANTED one", "").await;
    let answer = blocked.await.unwrap().expect(200);
    assert_eq!(subjects(&answer["emails"]), ["the WANTED one"]);

    app.deliver(ADDRESS, "later", "").await;
    let path = format!("{PATH}?since={}", answer["next_since"].as_str().unwrap());
    assert_eq!(subjects(&app.get(&path).await.expect(200)["emails"]), ["later"]);
}

#[tokio::test]
async fn returns_after_25_s_with_the_mail_collected_so_far() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "quiet.example").await;
    let token = || app.token(&app.tenant, TokenKind::Live);
    let incomplete = app.start_long_poll(&token().await, &format!("{PATH}?count=2")).await;
    let first = app.start_long_poll(&token().await, PATH).await;
    let mut empty = Vec::new();
    for path in [
        "/v1/inbox/quiet@inbox.localhost?wait=1",
        &format!("{PATH}?subject=absent"),
        "/v1/me",
        "/v1/domain/quiet.example",
    ] {
        empty.push(app.start_long_poll(&token().await, path).await);
    }
    app.deliver(ADDRESS, "only one", "").await;
    // Every waiting request is notified of a mail at once.
    first.await.unwrap().expect(200);
    app.jump(HOLD - Duration::from_secs(15)).await;
    assert!(!incomplete.is_finished() && !empty.iter().any(JoinHandle::is_finished), "`wait` is ignored");

    app.jump(Duration::from_secs(15)).await;
    let incomplete = incomplete.await.unwrap().expect(200);
    assert_eq!(subjects(&incomplete["emails"]), ["only one"]);
    let mut ended = Vec::new();
    for wait in empty {
        ended.push(wait.await.unwrap());
        assert_eq!(ended.last().unwrap().status, 204);
    }
    // All positions are valid cursors after the scanned mail.
    app.deliver(ADDRESS, "next", "").await;
    for response in ended {
        let since = response.header("x-next-since");
        assert!(!since.is_empty(), "a 204 carries its position");
        let next = app.get(&format!("{PATH}?since={since}")).await.expect(200);
        assert!(subjects(&next["emails"]).starts_with(&["next"]));
    }
}

#[tokio::test]
async fn waits_as_long_as_the_client_prefers() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "quiet.example").await;
    let ask = |path: &str, prefer: &str| {
        app.request(reqwest::Method::GET, path).live(&app.tenant.live).header("prefer", prefer)
    };
    for path in [PATH, "/v1/me", "/v1/domain/quiet.example"] {
        let look = ask(path, "wait=0").send().await;
        assert_eq!((look.status, look.header("preference-applied")), (204, "wait=0"), "{path}");
        assert!(!look.header("x-next-since").is_empty());
    }
    let shorter = tokio::spawn(ask(PATH, "respond-async, Wait=5; x=y").send());
    app.jump_until("the shorter wait ends", Duration::from_secs(6), || {
        let is_finished = shorter.is_finished();
        async move { is_finished.then_some(()) }
    })
    .await;
    let shorter = shorter.await.unwrap();
    assert_eq!((shorter.status, shorter.header("preference-applied")), (204, "wait=5"));

    app.deliver(ADDRESS, "there", "").await;
    let mail = ask(&format!("{PATH}?count=2"), "wait=0").send().await;
    assert_eq!(mail.header("preference-applied"), "wait=0");
    assert_eq!(
        subjects(&mail.expect(200)["emails"]),
        ["there"],
        "what there is, though it is less than `count`"
    );
    for ignored in ["wait=26", "wait=-1", "wait", "wait=x", "return=minimal"] {
        let answer = ask(PATH, ignored).send().await;
        assert_eq!((answer.status, answer.header("preference-applied")), (200, ""), "{ignored}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn next_since_is_after_all_scanned_mail_of_a_filtered_request() {
    let app = App::start().await;
    app.deliver(ADDRESS, "first", "").await;
    let first = app.get(&format!("{PATH}?subject=first")).await.expect(200);
    app.deliver(ADDRESS, "passed over", "").await;
    app.deliver(ADDRESS, "hit", "").await;
    let path = format!("{PATH}?subject=hit&since={}", first["next_since"].as_str().unwrap());
    let hit = app.get(&path).await.expect(200);
    app.deliver(ADDRESS, "after", "").await;
    let path = format!("{PATH}?since={}", hit["next_since"].as_str().unwrap());
    assert_eq!(subjects(&app.get(&path).await.expect(200)["emails"]), ["after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn treats_all_spellings_of_an_address_as_one_inbox() {
    let app = App::start().await;
    app.deliver("SHIP@Inbox.Localhost", "one", "").await;
    app.deliver("\"ship\"@inbox.localhost.", "two", "").await;
    app.deliver("@relay.example:ship@inbox.localhost", "three", "").await;
    for path in ["/v1/inbox/ship@inbox.localhost", "/v1/inbox/Ship%40INBOX.localhost."] {
        let answer = app.get(path).await.expect(200);
        assert_eq!(subjects(&answer["emails"]), ["three", "two", "one"], "{path}");
        assert_eq!(answer["emails"][0]["address"], json!(ADDRESS));
    }
}

async fn cursor(app: &App) -> String {
    app.deliver("ship@inbox.localhost", "first", "").await;
    app.get(PATH).await.expect(200)["next_since"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_altered_cursor() {
    let app = App::start().await;
    let cursor = cursor(&app).await;
    for i in 0..cursor.len() {
        let mut altered = cursor.clone().into_bytes();
        altered[i] = if altered[i] == b'A' { b'B' } else { b'A' };
        let altered = String::from_utf8(altered).unwrap();
        app.get(&format!("{PATH}?since={altered}")).await.assert_v1_error(400, "invalid_request");
    }
    let longer = format!("{cursor}AA");
    app.get(&format!("{PATH}?since={longer}")).await.assert_v1_error(400, "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_cursor_for_every_token_and_inbox_of_its_tenant() {
    let app = App::start().await;
    app.deliver("boat@inbox.localhost", "before", "").await;
    let cursor = cursor(&app).await;
    let token = app.token(&app.tenant, TokenKind::Live).await;
    app.deliver("boat@inbox.localhost", "after", "").await;
    let answer = app.get_as(&token, &format!("/v1/inbox/boat@inbox.localhost?since={cursor}")).await;
    assert_eq!(subjects(&answer.expect(200)["emails"]), ["after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn seals_equal_positions_into_different_cursors() {
    let app = App::start().await;
    let first = cursor(&app).await;
    let again = app.get(PATH).await.expect(200);
    assert_ne!(again["next_since"].as_str().unwrap(), first, "each sealed position is different");
}

#[tokio::test(flavor = "multi_thread")]
async fn following_next_since_returns_each_mail_once_while_mail_arrives() {
    let app = App::start().await;
    let mut since = cursor(&app).await;
    let mut met = Vec::new();
    for round in 0..6 {
        for i in 0..5 {
            app.deliver("ship@inbox.localhost", &format!("{round}.{i}"), "").await;
        }
        let answer = app.get(&format!("{PATH}?limit=4&since={since}")).await.expect(200);
        met.extend(subjects(&answer["emails"]).into_iter().rev().map(str::to_owned));
        since = answer["next_since"].as_str().unwrap().to_owned();
    }
    while met.len() < 30 {
        let answer = app.get(&format!("{PATH}?limit=4&since={since}")).await.expect(200);
        met.extend(subjects(&answer["emails"]).into_iter().rev().map(str::to_owned));
        since = answer["next_since"].as_str().unwrap().to_owned();
    }
    let sent: Vec<String> = (0..6).flat_map(|round| (0..5).map(move |i| format!("{round}.{i}"))).collect();
    assert_eq!(met, sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_eleventh_wait_of_a_tenant_on_an_address() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let mut blocked = Vec::new();
    for _ in 0..10 {
        let token = app.token(&app.tenant, TokenKind::Live).await;
        blocked.push(app.start_long_poll(&token, PATH).await);
    }
    let eleventh = app.token(&app.tenant, TokenKind::Live).await;
    app.get_as(&eleventh, PATH).await.assert_v1_error(429, "addr_busy");
    app.get_as(&eleventh, "/v1/inbox/SHIP@inbox.localhost.").await.assert_v1_error(429, "addr_busy");
    // Another address, and another tenant on this address, have their own slots.
    let elsewhere = app.start_long_poll(&eleventh, "/v1/inbox/boat@inbox.localhost").await;
    blocked.push(app.start_long_poll(&other.live, PATH).await);

    app.deliver("ship@inbox.localhost", "hit", "").await;
    app.deliver("boat@inbox.localhost", "hit", "").await;
    blocked.push(elsewhere);
    for wait in blocked {
        assert_eq!(wait.await.unwrap().status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frees_the_slot_of_a_client_that_disconnects() {
    let app = App::start().await;
    let blocked = app.start_long_poll(&app.tenant.live, PATH).await;
    blocked.abort();
    app.deliver("boat@inbox.localhost", "there", "").await;
    eventually("the slot of a disconnected client is free", || async {
        (app.get("/v1/inbox/boat@inbox.localhost").await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frees_the_slot_before_the_response_is_sent() {
    let app = App::start().await;
    app.deliver("ship@inbox.localhost", "0", "").await;
    let mut since = app.get(PATH).await.expect(200)["next_since"].as_str().unwrap().to_owned();
    for i in 1..=30 {
        let path = format!("{PATH}?since={since}");
        let (answer, ()) = tokio::join!(app.get(&path), async {
            app.deliver("ship@inbox.localhost", &format!("{i}"), "").await;
        });
        let answer = answer.expect(200);
        assert_eq!(answer["emails"][0]["subject"], format!("{i}"));
        since = answer["next_since"].as_str().unwrap().to_owned();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_waits_use_no_slot() {
    let app = App::start().await;
    app.deliver("ship@inbox.localhost", "there", "").await;
    for _ in 0..12 {
        app.get("/v1/inbox/a@elsewhere.example").await.assert_v1_error(404, "not_found");
        app.get(&format!("{PATH}?since=bad")).await.assert_v1_error(400, "invalid_request");
    }
    assert_eq!(app.get(PATH).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_the_wait_of_a_token_that_expires() {
    let app = App::start().await;
    let token = app.token(&app.tenant, TokenKind::Live).await;
    rows::expire_token(&app.pool, &token, app.clock.now() + SignedDuration::from_hours(1)).await;
    let blocked = app.start_long_poll(&token, PATH).await;
    app.advance_hours(2);
    within_deadline("the wait ends", blocked).await.unwrap().assert_v1_error(440, "session_expired");
}
