//! What a role says of a login that can't do what the role needs.

use std::net::SocketAddr;
use std::process::Command;

use tempmail_tests::binary::program;
use tempmail_tests::fleet::Role;
use tempmail_tests::port::free_port;
use tempmail_tests::postgres::Database;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Binary, http};

use super::{create_login, run};

/// `tempmail ingest` with a login, and where its probes answer.
fn start_ingest(url: &str) -> (Binary, SocketAddr) {
    let admin = free_port();
    let mut process = Command::new(program());
    process.arg("ingest").env_clear();
    process.env("TEMPMAIL_POSTGRES__URL", url);
    process.env("TEMPMAIL_ADMIN__LISTEN", admin.to_string());
    process.env("TEMPMAIL_SMTP__LISTEN", free_port().to_string());
    (Binary::spawn(process), admin)
}

async fn wait_for_readyz(admin: SocketAddr, expected: &str) {
    eventually(expected, || async {
        let answer = http::client().get(format!("http://{admin}/readyz")).send().await.ok()?;
        answer.text().await.ok()?.contains(expected).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_waits_until_its_login_has_the_rights() {
    let database = Database::create().await;
    let (login, url) = create_login(&database, "ingest", "").await;
    let (_ingest, admin) = start_ingest(&url);
    wait_for_readyz(admin, "postgres: the database login lacks a right (").await;
    run(&database.pool(), &format!("GRANT tempmail_ingest TO {login}")).await;
    wait_for_readyz(admin, "ok\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_names_the_group_that_its_login_should_be_in() {
    let database = Database::create().await;
    let (_ingest, admin) = start_ingest(&database.role_url(Role::Worker));
    let login = "tempmail_worker_login";
    wait_for_readyz(admin, &format!("postgres: the database login {login} lacks ")).await;
    let advice = format!(
        "which `ingest` needs: make it a member of tempmail_ingest (GRANT tempmail_ingest TO {login}), and run \
         `tempmail migrate`"
    );
    wait_for_readyz(admin, &advice).await;
}
