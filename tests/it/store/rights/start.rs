//! What a role says of a login that can't do what the role needs.

use tempmail_tests::binary::StartingRole;
use tempmail_tests::fleet::Role;
use tempmail_tests::postgres::Database;

use super::{create_login, run};

#[tokio::test(flavor = "multi_thread")]
async fn a_role_waits_until_its_login_has_the_rights() {
    let database = Database::create().await;
    let (login, url) = create_login(&database, "ingest", "").await;
    let ingest = StartingRole::start("ingest", &url);
    ingest.wait_for_readyz("postgres: the database login lacks a right (").await;
    run(&database.pool(), &format!("GRANT tempmail_ingest TO {login}")).await;
    ingest.wait_until_ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_names_the_group_that_its_login_should_be_in() {
    let database = Database::create().await;
    let ingest = StartingRole::start("ingest", &database.role_url(Role::Worker));
    let login = "tempmail_worker_login";
    ingest.wait_for_readyz(&format!("postgres: the database login {login} lacks ")).await;
    let advice = format!(
        "which `ingest` needs: make it a member of tempmail_ingest (GRANT tempmail_ingest TO {login}), and run \
         `tempmail migrate`"
    );
    ingest.wait_for_readyz(&advice).await;
}
