//! `tempmail token create`, `revoke`, `list`

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{App, CommandOutput};

use super::keys;

const PATH: &str = "/v1/inbox/shared@inbox.localhost";

async fn tokens(app: &App) -> Vec<Value> {
    let list = app.tempmail("token list harbour --json").await.json();
    assert_eq!(keys(&list), ["tokens"]);
    list["tokens"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn prints_only_the_new_token() {
    let app = App::start().await;
    app.deliver("shared@inbox.localhost", "hello", "").await;
    let live = app.tempmail("token create harbour --kind live").await;
    assert_eq!(live.success().len(), "tm_live_".len() + 64, "{}", live.stdout);
    assert_eq!(app.get_as(live.success(), PATH).await.status, 200);
    let pro = app.tempmail("token create harbour --kind pro").await;
    assert_eq!(pro.success().len(), "tm_pro_".len() + 64, "{}", pro.stdout);
    let answer = app.request(Method::GET, "/pro/api/accounts").bearer(pro.success()).send().await;
    assert_eq!(answer.status, 200);
    app.get_as(pro.success(), PATH).await.assert_v1_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn prints_the_record_with_the_token_as_json() {
    let app = App::start().await;
    let made = app.tempmail("token create harbour --kind live --name ci --json").await.json();
    let token = made["token"].as_str().unwrap();
    let mut expected = json!({
        "id": made["id"],
        "name": "ci",
        "kind": "live",
        "hint": token[token.len() - 4..],
        "created_at": made["created_at"],
        "last_used_at": null,
        "expires_at": null,
        "revoked_at": null,
        "surfaces": [],
    });
    assert_eq!(tokens(&app).await[0], expected, "the list never shows the token");
    // The interface has the same record.
    let body = app.request(Method::GET, "/pro/api/tokens").bearer(&app.tenant.pro).send().await.expect(200);
    assert_eq!(body["tokens"][0], expected);
    expected["token"] = token.into();
    assert_eq!(made, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn expires_a_token_at_the_given_time() {
    let app = App::start().await;
    let token = app.tempmail("token create harbour --kind live --expires-in-days 2").await;
    app.deliver("shared@inbox.localhost", "hello", "").await;
    app.advance_hours(47);
    app.deliver("shared@inbox.localhost", "hello", "").await;
    assert_eq!(app.get_as(token.success(), PATH).await.status, 200);
    app.advance_hours(2);
    app.get_as(token.success(), PATH).await.assert_v1_error(440, "session_expired");
    let used = async || app.tempmail("tenant show harbour --json").await.json()["tokens"]["used"].clone();
    assert_eq!(used().await, 3);
    sqlx::query("UPDATE api_token SET expires_at = created_at").execute(&app.pool).await.unwrap();
    assert_eq!(used().await, 0, "expired ones take no place");
    for days in ["0", "-1", "3651", "soon"] {
        app.tempmail(&format!("token create harbour --kind live --expires-in-days {days}"))
            .await
            .usage_error();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn validates_kind_and_name() {
    let app = App::start().await;
    for wrong in ["", " --kind dead", " --kind live --name \u{7}"] {
        app.tempmail(&format!("token create harbour{wrong}")).await.usage_error();
    }
    let long = "x".repeat(101);
    app.tempmail(&format!("token create harbour --kind live --name {long}")).await.usage_error();
    assert_eq!(tokens(&app).await.len(), 2, "no token was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_token_over_the_limit() {
    let app = App::start().await;
    app.tempmail("tenant set harbour --tokens 3").await.success();
    let third = app.tempmail("token create harbour --kind live --json").await.json();
    let refused = app.tempmail("token create harbour --kind live").await;
    let expected = "the tenant harbour has reached its limit of 3 tokens: revoke one, or raise the limit with \
         `tempmail tenant set --tokens`";
    assert_eq!(refused.failure(), expected);
    let id = third["id"].as_str().unwrap();
    app.tempmail(&format!("token revoke harbour {id}")).await.success();
    app.tempmail("token create harbour --kind live").await.success();
}

#[tokio::test(flavor = "multi_thread")]
async fn revokes_a_token_by_id_or_hint() {
    let app = App::start().await;
    for by in ["id", "hint"] {
        let made = app.tempmail("token create harbour --kind live --json").await.json();
        let (id, hint) = (made["id"].as_str().unwrap(), made["hint"].as_str().unwrap());
        let token = made["token"].as_str().unwrap();
        let waiting = app.start_long_poll(token, PATH).await;
        let revoked = app.tempmail(&format!("token revoke harbour {}", made[by].as_str().unwrap())).await;
        assert_eq!(revoked.success(), format!("revoked token {id} (cli, ends in {hint})"));
        app.get_as(token, PATH).await.assert_v1_error(401, "invalid_token");
        within_deadline("the open wait ends", waiting).await.unwrap().assert_v1_error(401, "invalid_token");
        let again = app.tempmail(&format!("token revoke harbour {id}")).await;
        assert_eq!(again.failure(), format!("the tenant harbour has no token {id}"));
    }
    let made = app.tempmail("token create harbour --kind pro --json").await.json();
    let id = made["id"].as_str().unwrap();
    let revoked = app.tempmail(&format!("token revoke harbour {id} --json")).await.json();
    assert_eq!(revoked, tokens(&app).await[0]);
    assert!(revoked["revoked_at"].is_string(), "{revoked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn revokes_only_one_token_of_the_tenant() {
    let app = App::start().await;
    let other = app.another_tenant("acme").await;
    let theirs = app.tempmail("token create acme --kind live --json").await.json();
    let id = theirs["id"].as_str().unwrap();
    for unknown in [id, "0000000000", "x", "00000000-0000-7000-8000-000000000000", &other.live] {
        let refused = app.tempmail(&format!("token revoke harbour {unknown}")).await;
        assert_eq!(refused.failure(), format!("the tenant harbour has no token {unknown}"));
    }
    sqlx::query("UPDATE api_token SET hint = 'abcd'").execute(&app.pool).await.unwrap();
    let refused = app.tempmail("token revoke harbour abcd").await;
    assert_eq!(refused.failure(), "the tenant harbour has 2 tokens ending in abcd: revoke it by its id");
    sqlx::query("UPDATE api_token SET managed_by = 'kubernetes'").execute(&app.pool).await.unwrap();
    let refused = app.tempmail(&format!("token revoke acme {id}")).await;
    assert_eq!(refused.failure(), format!("the token {id} is managed by Kubernetes: delete its ApiToken"));
    assert_eq!(app.count("SELECT count(*) FROM api_token WHERE revoked_at IS NOT NULL").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_all_tokens_newest_first() {
    let app = App::start().await;
    app.tempmail("tenant set harbour --tokens 100").await.success();
    for name in 0..31 {
        app.tempmail(&format!("token create harbour --kind live --name t{name}")).await.success();
    }
    let listed = tokens(&app).await;
    assert_eq!(listed.len(), 33);
    assert_eq!((&listed[0]["name"], &listed[30]["name"]), (&"t30".into(), &"t0".into()));
    let text = app.tempmail("token list harbour").await;
    let lines: Vec<&str> = text.success().lines().collect();
    assert_eq!(lines.len(), 34);
    let heads: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(heads, ["ID", "KIND", "HINT", "NAME", "CREATED", "LAST", "USED", "EXPIRES", "REVOKED"]);
    let cells: Vec<&str> = lines[1].split_whitespace().collect();
    let of = |key: &str| listed[0][key].as_str().unwrap();
    assert_eq!(cells, [of("id"), "live", of("hint"), "t30", of("created_at"), "-", "-", "-"]);
}

/// Clears the screen, adds a line, and shows `exe.txt` as `txt.exe`.
const HOSTILE: &str = "a\u{1b}[2J\nrevoked\u{202e}txt.exe\u{2066}\u{9b}b";
const ESCAPED: &str = "a\\u{1b}[2J\\nrevoked\\u{202e}txt.exe\\u{2066}\\u{9b}b";

#[tokio::test(flavor = "multi_thread")]
async fn escapes_what_a_terminal_would_obey_in_names() {
    let app = App::start().await;
    // A tenant names its tokens, also with characters that turn text around.
    let named = json!({ "name": "\u{202e}txt.exe", "kind": "live" });
    let created =
        app.request(Method::POST, "/pro/api/tokens").bearer(&app.tenant.pro).json(&named).send().await;
    let token = created.expect(201)["token"].as_str().unwrap().to_owned();
    let hint = &token[token.len() - 4..];
    let listed = app.tempmail("token list harbour").await;
    assert!(listed.success().contains(" \\u{202e}txt.exe "), "{}", listed.stdout);

    // Rows of before a rule, and those that somebody wrote by hand.
    sqlx::query("UPDATE api_token SET name = $1").bind(HOSTILE).execute(&app.pool).await.unwrap();
    let owner = app.database().url();
    let environment = [("TEMPMAIL_POSTGRES__URL", owner.as_str())];
    let restored = CommandOutput::run(&["database", "restored"], &environment).await;
    let outputs = [app.tempmail("token list harbour").await, restored];
    for (output, heading) in outputs.iter().zip([1, 3]) {
        let lines: Vec<&str> = output.success().lines().collect();
        assert_eq!(lines.len(), heading + 3, "a line a token: {lines:#?}");
        assert!(lines[heading..].iter().all(|line| line.contains(ESCAPED)), "{lines:#?}");
    }
    let revoked = app.tempmail(&format!("token revoke harbour {hint}")).await;
    assert!(revoked.success().contains(&format!("({ESCAPED}, ends in {hint})")), "{}", revoked.stdout);
    let refused = app.tempmail("token revoke harbour \u{202e}").await;
    assert_eq!(refused.failure(), "the tenant harbour has no token \\u{202e}");

    let json = app.tempmail("token list harbour --json").await;
    assert!(json.success().contains(r"\u001b[2J\nrevoked\u202etxt.exe\u2066\u009bb"), "{}", json.stdout);
    assert_eq!(tokens(&app).await[0]["name"], HOSTILE, "the value is the same");
}
