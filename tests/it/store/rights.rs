//! Who may do what in the database: a login without grants nothing, and the login of a role what
//! `docs/operations.md` says. That it is enough shows in all other tests, whose roles have logins of their own.

mod bounds;
mod documented;
mod migration;

use sqlx::{AssertSqlSafe, Executor as _, PgPool};
use tempmail_model::role_prefix::RolePrefix;
use tempmail_tests::CommandOutput;
use tempmail_tests::postgres::Database;
use uuid::Uuid;

/// SQLSTATE of a right that is lacking.
const DENIED: &str = "42501";

/// The roles of tempmail, in the order of the document.
const ROLES: [&str; 4] = ["ingest", "api", "worker", "operator"];

/// A name that no other test has: roles are of the whole server.
fn unique(name: &str) -> String {
    format!("{name}_{}", Uuid::new_v4().simple())
}

/// A prefix of the test's own.
fn prefix() -> RolePrefix {
    RolePrefix::try_from(unique("p")).unwrap()
}

/// A new role that may log in, with these attributes, and the URL of the database for it.
async fn create_login(database: &Database, name: &str, attributes: &str) -> (String, String) {
    let login = unique(name);
    run(&database.pool(), &format!("CREATE ROLE {login} LOGIN PASSWORD 'login' {attributes}")).await;
    let url = database.url();
    let (_, place) = url.split_once('@').unwrap();
    let url = format!("postgres://{login}:login@{place}");
    (login, url)
}

async fn run(pool: &PgPool, statements: &str) {
    pool.execute(AssertSqlSafe(statements.to_owned())).await.unwrap();
}

/// Runs `tempmail migrate` with a login and a prefix of group roles.
async fn migrate(url: &str, prefix: &RolePrefix) -> CommandOutput {
    let prefix = prefix.to_string();
    let environment = [("TEMPMAIL_POSTGRES__URL", url), ("TEMPMAIL_POSTGRES__ROLE_PREFIX", &prefix)];
    let migrated = CommandOutput::run(&["migrate"], &environment).await;
    assert_eq!(migrated.code, Some(0), "{}", migrated.stderr);
    migrated
}

/// The same as the owner, who may do everything.
async fn migrate_as_owner(database: &Database, prefix: &RolePrefix) {
    let migrated = migrate(&database.url(), prefix).await;
    assert_eq!(migrated.stdout, "");
    assert!(!migrated.stderr.contains("WARN"), "{}", migrated.stderr);
}

/// The SQLSTATE with which a statement is refused.
async fn refusal(pool: &PgPool, statement: &str) -> Option<String> {
    let refused = pool.execute(AssertSqlSafe(statement.to_owned())).await.err()?;
    Some(refused.as_database_error()?.code()?.into_owned())
}
