//! What is left of a mailbox whose object is deleted.

use reqwest::Method;
use serde_json::json;

use super::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_mailbox_goes_with_its_mail_and_its_address_is_held() {
    let scene = Scene::start().await;
    scene.ready("box", "").await;
    let (password, jwt) = (scene.told("box", "password").await, scene.sign_in("box").await);
    scene.world.app.deliver(&scene.address("box"), "hello", "").await;
    scene.team.delete("mailbox/box").await;
    scene.messages(&jwt).await.assert_api_error(401, "invalid_token");
    scene.try_to_sign_in("box", &password).await.assert_api_error(401, "invalid_credentials");
    scene.create("box", None).await.assert_api_error(409, "address_taken");
    // Its tenant may have the address back, without the mail.
    scene.ready("box", "").await;
    let messages = scene.messages(&scene.sign_in("box").await).await.expect(200);
    assert_eq!(messages["messages"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retained_mailbox_is_its_tenants_over_http() {
    let scene = Scene::start().await;
    let shown = scene.ready("box", ", deletionPolicy: Retain").await;
    let (password, jwt) = (scene.told("box", "password").await, scene.sign_in("box").await);
    scene.team.delete("mailbox/box").await;
    scene.messages(&jwt).await.expect(200);
    scene.try_to_sign_in("box", &password).await.expect(200);
    let pro = scene.pro(&scene.team).await;
    let path = format!("/pro/api/accounts/{}", shown["status"]["mailboxId"].as_str().expect("an id"));
    let deleted = scene.world.request(Method::DELETE, &path).bearer(&pro).send().await;
    assert_eq!(deleted.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_or_was_refused_goes_at_once() {
    let scene = Scene::start().await;
    let spec = format!("address: a@{}", scene.team.domain("never"));
    scene.team.apply("Mailbox", "waits", &spec).await.expect("it is taken");
    scene.refused("waits", "DomainNotServed").await;
    scene.team.delete("mailbox/waits").await;
    scene.declare("postmaster", "").await;
    scene.refused("postmaster", "InvalidSpec").await;
    scene.team.delete("mailbox/postmaster").await;
    // Deleted before anybody looked at it.
    scene.declare("early", "").await;
    scene.team.delete("mailbox/early").await;
    scene.try_to_sign_in("early", "correct horse").await.assert_api_error(401, "invalid_credentials");
}
