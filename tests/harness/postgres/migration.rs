//! The schema of a test's database, and a login for each role.

use sqlx::{AssertSqlSafe, Executor as _};
use tempmail_model::role_prefix::RolePrefix;
use tempmail_store::{SCHEMA, Store};

use super::password::verifier;
use crate::fleet::Role;

/// Replaces the bounds that functions with the owner's rights have for time: business time is that of the test.
const ANY_TIME: &str = "
    CREATE OR REPLACE FUNCTION clock_tolerance() RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT interval '10 years'
    $$;
    UPDATE schema_object
       SET definition_hash = sha256(convert_to(pg_get_functiondef('clock_tolerance()'::regprocedure), 'UTF8'))
     WHERE name = 'clock_tolerance()'";

/// Password of the logins.
const PASSWORD: &str = "login";

/// Members of the group roles, and of nothing else, with a verifier of their password. Roles are a server's: another
/// database may have them already.
fn logins(verifier: &str) -> String {
    format!(
        "DO $$
         DECLARE
             v_role text;
         BEGIN
             FOREACH v_role IN ARRAY ARRAY['ingest', 'api', 'worker', 'operator'] LOOP
                 IF to_regrole(format('tempmail_%s_login', v_role)) IS NULL THEN
                     EXECUTE format('CREATE ROLE tempmail_%1$s_login LOGIN PASSWORD %2$L IN ROLE tempmail_%1$s',
                                    v_role, '{verifier}');
                 END IF;
             END LOOP;
         END $$"
    )
}

/// Migrates a database whose clock the test or benchmark moves.
///
/// # Panics
/// It is not empty, or Postgres does not answer.
pub async fn migrate(store: &Store) {
    SCHEMA.migrate(store, &RolePrefix::default()).await.expect("the migrations apply to an empty database");
    store.pool().execute(ANY_TIME).await.expect("the bounds can be replaced");
}

/// Migrates the database of a URL, and creates the logins of the roles. All passwords are quick to check from now on.
pub(super) async fn migrate_with_logins(url: &str) {
    let store = Store::connect(url, 1, "tempmail tests").expect("our own URL is one");
    migrate(&store).await;
    let owners = password_of(url);
    let owner = format!("ALTER ROLE current_user PASSWORD '{}'", verifier(owners));
    for statement in [logins(&verifier(PASSWORD)), owner] {
        store
            .pool()
            .execute(AssertSqlSafe(statement))
            .await
            .expect("the owner of the server may change roles");
    }
    store.pool().close().await;
}

/// The URL of the same database for the login of a role.
pub(super) fn url_for(role: Role, url: &str) -> String {
    let (_, place) = url.split_once('@').expect("the URL has a login");
    format!("postgres://tempmail_{}_login:{PASSWORD}@{place}", role.command())
}

/// The password in a URL.
fn password_of(url: &str) -> &str {
    let (login, _) = url.split_once('@').expect("the URL has a login");
    login.rsplit_once(':').expect("the login has a password").1
}
