//! What a mailbox is when its tenant does not allow it any more, or is another one.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::kubernetes::condition;
use tempmail_tests::wait::eventually;

use super::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_grant_ends_all_sign_ins_and_keeps_the_mail() {
    let scene = Scene::start().await;
    scene.ready("box", "").await;
    let (former, jwt) = (scene.told("box", "password").await, scene.sign_in("box").await);
    let tenant = format!("tenant/{}", scene.team.tenant);
    let patch = ["patch", &tenant, "--type=merge", "-p", r#"{"spec": {"allowedNamespaces": null}}"#];
    scene.world.cluster.kubectl(&patch).await.expect("the tenant is there");
    scene.refused("box", "TenantRefNotPermitted").await;
    scene.messages(&jwt).await.assert_api_error(401, "invalid_token");
    scene.try_to_sign_in("box", &former).await.assert_api_error(401, "invalid_credentials");
    scene.world.app.deliver(&scene.address("box"), "meanwhile", "").await;
    scene.team.declare_tenant("").await;
    scene.team.wait("mailbox/box", "Ready").await;
    scene.messages(&jwt).await.assert_api_error(401, "invalid_token");
    scene.try_to_sign_in("box", &former).await.assert_api_error(401, "invalid_credentials");
    scene.shows(&scene.sign_in("box").await, "meanwhile").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_made_again_inherits_no_mailbox() {
    let scene = Scene::with("  deletionPolicy: Delete").await;
    scene.ready("box", "").await;
    let (former, jwt) = (scene.told("box", "password").await, scene.sign_in("box").await);
    scene.team.delete(&format!("tenant/{}", scene.team.tenant)).await;
    scene.messages(&jwt).await.assert_api_error(401, "invalid_token");
    scene.team.declare_tenant("").await;
    // The address is held, so that nobody reads what is still sent to it.
    scene.refused("box", "AddressTaken").await;
    scene.try_to_sign_in("box", &former).await.assert_api_error(401, "invalid_credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_of_a_tenant_that_was_retained_is_not_the_next_ones() {
    let scene = Scene::start().await;
    let shown = scene.ready("box", "").await;
    let (former, jwt) = (scene.told("box", "password").await, scene.sign_in("box").await);
    scene.team.delete(&format!("tenant/{}", scene.team.tenant)).await;
    scene.team.declare_tenant("").await;
    let replaced = scene.refused("box", "TenantReplaced").await;
    assert_eq!(replaced["status"]["mailboxId"], shown["status"]["mailboxId"]);
    assert_eq!(condition(&replaced, "Accepted").expect("Accepted is told")["status"], "False");
    assert_eq!(scene.told("box", "password").await, former);
    scene.try_to_sign_in("box", &former).await.assert_api_error(401, "invalid_credentials");
    scene.messages(&jwt).await.assert_api_error(401, "invalid_token");
    let pro = scene.pro(&scene.team).await;
    let list = scene.world.request(Method::GET, "/pro/api/accounts").bearer(&pro).send().await.expect(200);
    assert_eq!(list["accounts"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_tenant_gets_no_mailbox() {
    let scene = Scene::with("  suspended: true").await;
    scene.declare("box", "").await;
    let shown = scene.refused("box", "TenantSuspended").await;
    assert_eq!(condition(&shown, "Stalled").expect("Stalled is told")["status"], "True");
    assert!(scene.team.kubectl(&["get", "secret/box-mailbox"]).await.is_err(), "no password is told");
    scene.team.declare_tenant("  suspended: false").await;
    // It is looked at again by itself.
    scene.team.wait("mailbox/box", "Ready").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_vanished_is_declared_anew() {
    let scene = Scene::start().await;
    let shown = scene.ready("box", "").await;
    let (former, jwt) = (scene.told("box", "password").await, scene.sign_in("box").await);
    let id: uuid::Uuid = shown["status"]["mailboxId"].as_str().expect("an id").parse().expect("a UUID");
    let removal = "SELECT remove_mailbox($1, 'kubernetes', now(), 30)";
    sqlx::query(removal).bind(id).execute(&scene.world.pool()).await.expect("the row is there");
    eventually("it is another one", || async {
        let now = scene.team.get("mailbox/box").await;
        (now["status"]["mailboxId"] != shown["status"]["mailboxId"]).then_some(())
    })
    .await;
    scene.team.wait("mailbox/box", "Ready").await;
    scene.messages(&jwt).await.assert_api_error(401, "invalid_token");
    scene.try_to_sign_in("box", &former).await.assert_api_error(401, "invalid_credentials");
    scene.messages(&scene.sign_in("box").await).await.expect(200);
}
