//! The schema of a test's database, and a login for each role.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, Executor as _};
use tempmail_model::role_prefix::RolePrefix;
use tempmail_store::{SCHEMA, Store};

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

const SALT: &[u8] = b"of tempmail's tests";

/// What Postgres keeps of a password: its SCRAM-SHA-256 verifier (RFC 5802, RFC 7677) with one round. A server takes 4,096
/// at each connection, which is most of what a test without optimization computes.
fn verifier(password: &str) -> String {
    let salted = hmac(password.as_bytes(), &[SALT, &1_u32.to_be_bytes()].concat());
    let stored_key = Sha256::digest(hmac(&salted, b"Client Key"));
    let server_key = hmac(&salted, b"Server Key");
    let [salt, stored_key, server_key] =
        [SALT, stored_key.as_slice(), &server_key].map(|octets| STANDARD.encode(octets));
    format!("SCRAM-SHA-256$1:{salt}${stored_key}:{server_key}")
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}
