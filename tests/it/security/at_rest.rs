//! Secrets in the database: hashed or sealed, never as they are.

use sqlx::{AssertSqlSafe, PgPool};
use tempmail_tests::App;

use super::canaries::manage;

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
