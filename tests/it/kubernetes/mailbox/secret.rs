//! Passwords that change, and Secrets that are lost, altered or somebody else's.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::wait::eventually;

use super::Scene;

/// Waits until a mailbox's Secret has another password.
async fn another_password(scene: &Scene, name: &str, former: &str) -> String {
    let secret = format!("{name}-mailbox");
    let get = ["get", "secret", &secret, "-o", "go-template={{.data.password | base64decode}}"];
    eventually("the Secret has another password", || async {
        scene.team.kubectl(&get).await.ok().filter(|password| password != former && password.len() == 32)
    })
    .await
}

/// Asserts that a mailbox has this password, and neither that one nor the JWT any more.
async fn has_changed(scene: &Scene, name: &str, former: (&str, &str), password: &str) {
    eventually("the new password signs in", || async {
        (scene.try_to_sign_in(name, password).await.status == 200).then_some(())
    })
    .await;
    let (former, jwt) = former;
    scene.try_to_sign_in(name, former).await.assert_api_error(401, "invalid_credentials");
    scene.messages(jwt).await.assert_api_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_value_of_the_annotation_makes_a_new_password_once() {
    let scene = Scene::start().await;
    scene.ready("box", "").await;
    let (former, jwt) = (scene.told("box", "password").await, scene.sign_in("box").await);
    let annotate = ["annotate", "mailbox/box", "tempmail.dev/rotate-requested-at=now"];
    scene.team.kubectl(&annotate).await.expect("it is there");
    let path = "--for=jsonpath={.status.lastHandledRotateAt}=now";
    scene.team.kubectl(&["wait", "mailbox/box", path, "--timeout=120s"]).await.expect("it is handled");
    let password = scene.told("box", "password").await;
    has_changed(&scene, "box", (&former, &jwt), &password).await;
    // What was carried out is not carried out again.
    let jwt = scene.sign_in("box").await;
    scene.declare("box", ", adoptionPolicy: IfUnowned").await;
    let path = "--for=jsonpath={.status.observedGeneration}=2";
    scene.team.kubectl(&["wait", "mailbox/box", path, "--timeout=120s"]).await.expect("it is looked at");
    scene.messages(&jwt).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_secret_is_written_anew_with_another_password() {
    let scene = Scene::start().await;
    scene.ready("box", "").await;
    let (former, jwt) = (scene.told("box", "password").await, scene.sign_in("box").await);
    scene.team.delete("secret/box-mailbox").await;
    scene.nudge("box").await;
    let password = another_password(&scene, "box", &former).await;
    has_changed(&scene, "box", (&former, &jwt), &password).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_somebody_wrote_into_the_secret_is_never_a_password() {
    let scene = Scene::start().await;
    scene.ready("box", "").await;
    let (former, jwt) = (scene.told("box", "password").await, scene.sign_in("box").await);
    let patch = json!({"stringData": {"password": "chosen by somebody"}}).to_string();
    scene.team.kubectl(&["patch", "secret", "box-mailbox", "-p", &patch]).await.expect("it is there");
    scene.nudge("box").await;
    eventually("it is noticed", || async {
        (scene.told("box", "password").await != "chosen by somebody").then_some(())
    })
    .await;
    let password = another_password(&scene, "box", &former).await;
    has_changed(&scene, "box", (&former, &jwt), &password).await;
    scene.try_to_sign_in("box", "chosen by somebody").await.assert_api_error(401, "invalid_credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_somebody_wrote_into_the_secret_counts_as_a_loss() {
    let scene = Scene::start().await;
    scene.ready("box", "").await;
    let (former, jwt) = (scene.told("box", "password").await, scene.sign_in("box").await);
    let patch = json!({"stringData": {"address": "another@inbox.localhost"}}).to_string();
    scene.team.kubectl(&["patch", "secret", "box-mailbox", "-p", &patch]).await.expect("it is there");
    scene.nudge("box").await;
    let password = another_password(&scene, "box", &former).await;
    assert_eq!(scene.told("box", "address").await, scene.address("box"));
    has_changed(&scene, "box", (&former, &jwt), &password).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_somebody_else_is_left_alone() {
    let scene = Scene::start().await;
    let theirs = ["create", "secret", "generic", "theirs", "--from-literal=password=theirs"];
    scene.team.kubectl(&theirs).await.expect("it is made");
    scene.declare("box", ", secret: {name: theirs}").await;
    scene.refused("box", "SecretConflict").await;
    let secret = scene.team.get("secret/theirs").await;
    assert_eq!(secret["data"], json!({"password": "dGhlaXJz"}));
    let pro = scene.pro(&scene.team).await;
    let list = scene.world.request(Method::GET, "/pro/api/accounts").bearer(&pro).send().await.expect(200);
    assert_eq!(list["accounts"], json!([]), "nothing is made that nobody could be told of");
    scene.team.delete("secret/theirs").await;
    scene.nudge("box").await;
    scene.team.wait("mailbox/box", "Ready").await;
    let secret = scene.team.get("secret/theirs").await;
    assert_eq!(secret["metadata"]["ownerReferences"][0]["kind"], "Mailbox");
}
