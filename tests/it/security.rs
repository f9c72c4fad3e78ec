//! Nothing of a person's mail or secrets is in a log or a metric, and the database has secrets hashed or sealed only.

use std::fs;

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool};
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::http::Request;
use tempmail_tests::{App, SmtpClient, log, postgres};

/// One word for each thing that no log may have.
const CANARIES: [&str; 9] = [
    "kanarek-localpart",
    "kanarek-password",
    "kanarek-subject",
    "kanarek-body",
    "kanarek-sender",
    "kanarek-helo",
    "kanarek-query",
    "kanarek-filename",
    "kanarek-unknown",
];

/// Mail and requests of all kinds, good and bad, with canaries in them.
async fn plant(server: std::net::SocketAddr, base: &str, live: &str, pro: &str) -> Vec<String> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = |method: Method, path: &str| Request::new(&client, method, &format!("{base}{path}"));
    let account = json!({ "address": "kanarek-localpart@inbox.localhost", "password": "kanarek-password" });
    let wrong =
        json!({ "address": "kanarek-localpart@inbox.localhost", "password": "kanarek-password-wrong" });
    let created = ask(Method::POST, "/api/accounts").bearer(pro).json(&account).send().await.expect(201);
    let jwt = created["token"].as_str().unwrap().to_owned();
    // The second is refused by a constraint, whose message would show the local part.
    let again = ask(Method::POST, "/api/accounts").json(&account).send().await;
    again.assert_api_error(409, "address_taken");
    ask(Method::POST, "/api/token").json(&account).send().await.expect(200);
    ask(Method::POST, "/api/token").json(&wrong).send().await.assert_api_error(401, "invalid_credentials");
    ask(Method::POST, "/api/token").body("application/json", "{\"kanarek-body").send().await;

    let mut smtp = SmtpClient::connect(server).await;
    smtp.expect_positive("EHLO kanarek-helo.example").await;
    smtp.command("kanarek-unknown").await;
    smtp.command("MAIL FROM:<kanarek-sender@client.example> kanarek-unknown=1").await;
    let message = "From: kanarek-sender@client.example\r\nSubject: kanarek-subject\r\nMIME-Version: 1.0\r\n\
        Content-Type: text/plain\r\nContent-Disposition: attachment; filename=\"kanarek-filename\"\r\n\r\n\
        kanarek-body\r\n";
    let recipients = [
        "kanarek-localpart@inbox.localhost",
        "kanarek-localpart+kanarek-unknown@inbox.localhost",
        "kanarek-unknown@inbox.localhost",
    ];
    let reply = smtp.transact("kanarek-sender@client.example", &recipients, message.as_bytes()).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    smtp.transact("kanarek-sender@client.example", &["kanarek-unknown@elsewhere.example"], b"x").await;
    smtp.expect_positive("RSET").await;
    let bare =
        smtp.transact("kanarek-sender@client.example", &recipients, b"Subject: kanarek-subject\n\r\n").await;
    assert_eq!(bare.status(), "554 5.6.0");
    smtp.expect_positive("MAIL FROM:<kanarek-sender@client.example>").await;
    smtp.send("RCPT TO:<kanarek-localpart@inbox.localhost>\r\nDATA\r\nSubject: kanarek-subj").await;
    drop(smtp);

    let inbox = ask(Method::GET, "/v1/inbox/kanarek-localpart@inbox.localhost?subject=kanarek-subject");
    let emails = inbox.live(live).send().await.expect(200);
    let id = emails["emails"][0]["id"].as_str().unwrap();
    for path in [
        format!("/v1/email/{id}"),
        format!("/v1/email/{id}/raw"),
        format!("/v1/email/{id}/attachments/0"),
        "/v1/inbox/kanarek-localpart@inbox.localhost?since=kanarek-query".into(),
        "/v1/inbox/kanarek-localpart@elsewhere.example?token=kanarek-query".into(),
        "/v1/kanarek-unknown?kanarek-query=1".into(),
        format!("/v1/sse/addr?address=kanarek-unknown@inbox.localhost&token={live}"),
        format!("/v1/sse/user?token={live}&since=kanarek-query"),
    ] {
        ask(Method::GET, &path).live(live).header("x-canary", "kanarek-unknown").send().await;
    }
    ask(Method::GET, "/v1/inbox/a@inbox.localhost").live("tm_live_kanarek-unknown").send().await;
    ask(Method::GET, "/v1/sse/user?token=kanarek-unknown")
        .header("last-event-id", "kanarek-query")
        .send()
        .await;
    for path in
        ["/api/messages".to_owned(), format!("/api/messages/{id}"), "/api/messages?page=kanarek-query".into()]
    {
        ask(Method::GET, &path).bearer(&jwt).send().await;
    }
    ask(Method::GET, "/api/messages").bearer("kanarek-unknown").send().await;
    ask(Method::DELETE, "/v1/inbox/kanarek-unknown@inbox.localhost").live(live).send().await;
    ask(Method::DELETE, "/api/me").bearer(&jwt).send().await;
    let mut secrets = vec![live.to_owned(), pro.to_owned(), jwt];
    secrets.extend(manage(base, live, pro).await);
    secrets
}

/// Uses what a tenant manages, well and badly; returns every secret that was answered.
pub(super) async fn manage(base: &str, live: &str, pro: &str) -> Vec<String> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = |method: Method, path: &str| {
        Request::new(&client, method, &format!("{base}{path}")).bearer(pro).header("x-api-token", live)
    };
    let mut secrets = Vec::new();
    let mut add = |answer: &Value, field: &str| secrets.push(answer[field].as_str().unwrap().to_owned());

    let account = json!({ "address": "kanarek-localpart2@inbox.localhost", "password": "kanarek-password" });
    let account = ask(Method::POST, "/api/accounts").json(&account).send().await.expect(201);
    add(&account, "token");
    let reset = format!("/pro/api/accounts/{}/reset-password", account["id"].as_str().unwrap());
    for (password, status) in [("kanarek-password-2", 200), (&"kanarek-password".repeat(9), 400)] {
        ask(Method::PUT, &reset).json(&json!({ "password": password })).send().await.expect(status);
    }
    let session = ask(Method::POST, "/pro/api/session").json(&json!({ "token": pro })).send().await;
    add(&session.expect(200), "token");
    let guess = json!({ "token": "tm_pro_kanarek-unknown" });
    ask(Method::POST, "/pro/api/session").json(&guess).send().await.assert_api_error(401, "invalid_token");

    for path in ["/pro/api/tokens", "/v1/tokens"] {
        let token =
            ask(Method::POST, path).json(&json!({ "name": "kanarek-unknown" })).send().await.expect(201);
        add(&token, "token");
        let bad = json!({ "name": "kanarek-unknown\n", "kind": "kanarek-unknown" });
        ask(Method::POST, path).json(&bad).send().await.expect(400);
        ask(Method::DELETE, &format!("{path}/{}", token["id"].as_str().unwrap())).send().await.expect(204);
        ask(Method::GET, &format!("{path}?page=kanarek-query")).send().await.expect(400);
    }
    let webhook = json!({ "url": "https://hooks.example/kanarek-query", "events": ["email.received"] });
    let created = ask(Method::POST, "/pro/api/webhooks").json(&webhook).send().await.expect(201);
    add(&created, "secret");
    ask(Method::POST, "/pro/api/webhooks").json(&webhook).send().await.expect(403);
    let bad = json!({ "url": "http://kanarek-query/", "events": ["kanarek-unknown"] });
    ask(Method::POST, "/pro/api/webhooks").json(&bad).send().await.expect(400);
    let path = format!("/pro/api/webhooks/{}", created["id"].as_str().unwrap());
    add(&ask(Method::POST, &format!("{path}/rotate")).send().await.expect(200), "secret");
    ask(Method::GET, &format!("{path}/deliveries?limit=kanarek-query")).send().await.expect(400);
    ask(Method::GET, "/pro/api/accounts/kanarek-unknown/messages").send().await.expect(404);
    secrets
}

fn search(place: &str, text: &str, secrets: &[String]) {
    let lower = text.to_lowercase();
    for canary in CANARIES.iter().copied().chain(["kanarek"]).chain(secrets.iter().map(String::as_str)) {
        if let Some(at) = lower.find(&canary.to_lowercase()) {
            let from = lower[..at].rfind('\n').map_or(0, |newline| newline + 1);
            let line = lower[from..].lines().next().unwrap_or_default();
            panic!("{canary} is in {place}: {line}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_no_canary_in_the_roles() {
    let app = App::start().await;
    let base = format!("http://{}", app.http());
    let secrets = plant(app.smtp(), &base, &app.tenant.live, &app.tenant.pro).await;
    app.worker_pass().await;
    // A batch that Postgres refuses, and Postgres away, are logged too.
    sqlx::query("ALTER TABLE message ADD CONSTRAINT poison CHECK (subject <> 'kanarek-subject')")
        .execute(&app.pool)
        .await
        .ok();
    let mut smtp = SmtpClient::connect_with_ehlo(app.smtp()).await;
    smtp.transact(
        "kanarek-sender@client.example",
        &["kanarek-unknown@inbox.localhost"],
        b"Subject: kanarek-subject\r\n\r\n",
    )
    .await;
    let log = log::captured();
    assert!(log.contains("tempmail"), "the roles log something");
    search("the log of the roles", &log, &secrets);
    let _ = postgres::server();
}

#[tokio::test(flavor = "multi_thread")]
async fn has_no_canary_in_logs_and_metrics_of_up() {
    let installation = UpInstallation::new();
    let server = installation.up(&[
        ("TEMPMAIL_TELEMETRY__LOG", "debug"),
        // More requests come than a client may make.
        ("TEMPMAIL_LIMITS__V1_PER_SECOND", "1000"),
        ("TEMPMAIL_LIMITS__PRO_PER_SECOND", "1000"),
    ]);
    let credentials = installation.credentials();
    let text = |key: &str| credentials[key].as_str().unwrap().to_owned();
    let secrets = plant(installation.smtp, &text("base_url"), &text("live_token"), &text("pro_token")).await;

    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for path in ["/metrics", "/readyz", "/livez"] {
        let url = format!("http://{}{path}", installation.admin);
        let answer = Request::new(&client, Method::GET, &url).send().await;
        assert_eq!(answer.status, 200, "{path}");
        search(path, &answer.text(), &secrets);
    }
    // Standard output is for the person who started it, and shows a token to try.
    let logged = server.stderr();
    assert!(!logged.is_empty(), "up logs something");
    search("the log of up", &logged, &secrets);
    let mut logs = 0;
    for file in installation.plain_files() {
        if ["credentials.json", "keys.json"].iter().any(|name| file.ends_with(name)) {
            continue;
        }
        logs += 1;
        let content = fs::read(&file).unwrap_or_default();
        search(&file.display().to_string(), &String::from_utf8_lossy(&content), &secrets);
    }
    let postgres_logs = postgres_logs(&installation.data_dir());
    for (path, content) in &postgres_logs {
        search(path, content, &secrets);
    }
    assert!(logs + postgres_logs.len() > 0, "some log of Postgres was found");
}

/// Logs that Postgres writes itself, wherever below the data directory.
fn postgres_logs(directory: &std::path::Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(postgres_logs(&path));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "log" || extension == "csv" || extension == "json")
            && !["credentials.json", "keys.json"].iter().any(|name| path.ends_with(name))
        {
            found.push((
                path.display().to_string(),
                String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned(),
            ));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_no_secret_in_clear_text() {
    let app = App::start().await;
    let base = format!("http://{}", app.http());
    let mut secrets = manage(&base, &app.tenant.live, &app.tenant.pro).await;
    secrets.extend([&app.tenant.live, &app.tenant.pro].map(Clone::clone));
    secrets.extend(["kanarek-password", "whsec_", "tm_pro_", "tm_live_"].map(str::to_owned));
    let content = rows(&app.pool).await;
    assert!(content.contains("hooks.example/kanarek-query"), "the database is looked at");
    for secret in secrets {
        // Also without its prefix, and as octets, which Postgres shows in hexadecimal digits.
        let prefixes = ["whsec_", "tm_pro_", "tm_live_"];
        let random = prefixes.iter().find_map(|prefix| secret.strip_prefix(prefix));
        let random = random.filter(|random| !random.is_empty()).unwrap_or(&secret);
        for text in [&secret, random] {
            let octets: String = text.bytes().map(|octet| format!("{octet:02x}")).collect();
            for clear in [text, &octets] {
                let at = content.find(clear).map(|at| &content[..at + clear.len()]);
                let line = at.and_then(|content| content.lines().last());
                assert!(line.is_none(), "{clear} is in {line:?}");
            }
        }
    }
}

/// Every row of every table, as text; octets as Postgres shows them, in hexadecimal digits.
pub(crate) async fn rows(pool: &PgPool) -> String {
    let tables: Vec<String> =
        sqlx::query_scalar("SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
            .fetch_all(pool)
            .await
            .unwrap();
    let mut content = String::new();
    for table in tables {
        let statement = AssertSqlSafe(format!("SELECT row_to_json(t)::text FROM {table} t"));
        let rows: Vec<String> = sqlx::query_scalar(statement).fetch_all(pool).await.unwrap();
        for row in rows {
            content.push_str(&format!("{table}: {row}\n"));
        }
    }
    content
}
