//! `next_since`: opaque, and valid for its tenant only.

use tempmail_model::token::TokenKind;
use tempmail_tests::App;

use super::subjects;

const PATH: &str = "/v1/inbox/ship@inbox.localhost";

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
async fn rejects_a_cursor_of_another_tenant() {
    let app = App::start().await;
    let cursor = cursor(&app).await;
    let other = app.another_tenant("lighthouse").await;
    let answer = app.get_as(&other.live, &format!("{PATH}?since={cursor}")).await;
    answer.assert_v1_error(400, "invalid_request");
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
