//! What a mailbox is when its tenant does not allow it any more, or is another one.

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
    scene.messages(&jwt).await.is_api_error(401, "invalid_token");
    scene.try_to_sign_in("box", &former).await.is_api_error(401, "invalid_credentials");
    scene.world.app.deliver(&scene.address("box"), "meanwhile", "").await;
    scene.team.declare_tenant("").await;
    scene.team.wait("mailbox/box", "Ready").await;
    scene.messages(&jwt).await.is_api_error(401, "invalid_token");
    scene.try_to_sign_in("box", &former).await.is_api_error(401, "invalid_credentials");
    scene.shows(&scene.sign_in("box").await, "meanwhile").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_made_again_inherits_no_mailbox() {
    let scene = Scene::with("  deletionPolicy: Delete").await;
    scene.ready("box", "").await;
    let (former, jwt) = (scene.told("box", "password").await, scene.sign_in("box").await);
    scene.team.delete(&format!("tenant/{}", scene.team.tenant)).await;
    scene.messages(&jwt).await.is_api_error(401, "invalid_token");
    scene.team.declare_tenant("").await;
    // The address is held, so that nobody reads what is still sent to it.
    scene.refused("box", "AddressTaken").await;
    scene.try_to_sign_in("box", &former).await.is_api_error(401, "invalid_credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_vanished_is_declared_anew() {
    let scene = Scene::start().await;
    let shown = scene.ready("box", "").await;
    let (former, jwt) = (scene.told("box", "password").await, scene.sign_in("box").await);
    let id: uuid::Uuid = shown["status"]["mailboxId"].as_str().expect("an id").parse().expect("a UUID");
    let removal = "SELECT remove_mailbox($1, gen_random_uuid(), 'kubernetes', now(), 30)";
    sqlx::query(removal).bind(id).execute(&scene.world.pool()).await.expect("the row is there");
    eventually("it is another one", || async {
        let now = scene.team.get("mailbox/box").await;
        (now["status"]["mailboxId"] != shown["status"]["mailboxId"]).then_some(())
    })
    .await;
    scene.team.wait("mailbox/box", "Ready").await;
    scene.messages(&jwt).await.is_api_error(401, "invalid_token");
    scene.try_to_sign_in("box", &former).await.is_api_error(401, "invalid_credentials");
    scene.messages(&scene.sign_in("box").await).await.expect(200);
}
