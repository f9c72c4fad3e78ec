//! Which addresses a mailbox may be declared at.

use serde_json::Value;
use tempmail_tests::kubernetes::{Team, condition};

use super::Scene;

fn message(object: &Value) -> String {
    let accepted = condition(object, "Accepted").expect("Accepted is told");
    assert_eq!(accepted["status"], "False");
    accepted["message"].as_str().expect("a sentence").to_owned()
}

/// A verified custom domain of a team's tenant.
async fn insert_verified(scene: &Scene, team: &Team<'_>, domain: &str) {
    sqlx::query(
        "INSERT INTO domain (id, name, tenant, serves, shared_inboxes, verify_token, created_at, deadline)
         SELECT gen_random_uuid(), $1, id, true, false, 'token of ' || id, now(), now() FROM tenant WHERE name = $2",
    )
    .bind(domain)
    .bind(&team.tenant)
    .execute(&scene.world.pool())
    .await
    .expect("the domain is free");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_not_to_be_had_is_refused_with_one_answer() {
    let scene = Scene::start().await;
    let another = Team::with(scene.world.cluster, "").await;
    let theirs = scene.pro(&another).await;
    let free = scene.create("free", None).await.expect(201);
    scene.create("theirs", Some(&theirs)).await.expect(201);
    let gone = scene.create("held", None).await.expect(201);
    let jwt = |made: &Value| made["token"].as_str().expect("a JWT").to_owned();
    let deletion = scene.world.request(reqwest::Method::DELETE, "/api/me").bearer(&jwt(&gone));
    assert_eq!(deletion.send().await.status, 204);
    let mut messages = Vec::new();
    for name in ["free", "theirs", "held"] {
        scene.declare(name, ", adoptionPolicy: IfUnowned").await;
        let shown = scene.refused(name, "AddressTaken").await;
        assert_eq!(shown["status"]["mailboxId"], Value::Null);
        messages.push(message(&shown));
        let secret = format!("secret/{name}-mailbox");
        assert!(scene.team.kubectl(&["get", &secret]).await.is_err(), "no password is told");
    }
    assert!(messages.iter().all(|message| *message == messages[0]), "{messages:?}");
    for name in ["free", "theirs"] {
        scene.try_to_sign_in(name, "correct horse").await.expect(200);
    }
    scene.messages(&jwt(&free)).await.expect(200);
    // What was refused goes without touching what was in the way.
    scene.team.delete("mailbox/free").await;
    scene.messages(&jwt(&free)).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_tenant_made_over_http_is_taken_over_only_if_asked() {
    let scene = Scene::start().await;
    let pro = scene.pro(&scene.team).await;
    let made = scene.create("box", Some(&pro)).await.expect(201);
    let jwt = made["token"].as_str().expect("a JWT");
    scene.world.app.deliver(&scene.address("box"), "before", "").await;
    scene.declare("box", "").await;
    scene.refused("box", "ExistsUnmanaged").await;
    scene.messages(jwt).await.expect(200);
    let shown = scene.ready("box", ", adoptionPolicy: IfUnowned").await;
    assert_eq!(shown["status"]["mailboxId"], made["id"]);
    scene.messages(jwt).await.assert_api_error(401, "invalid_token");
    scene.try_to_sign_in("box", "correct horse").await.assert_api_error(401, "invalid_credentials");
    scene.shows(&scene.sign_in("box").await, "before").await;
    // Another object does not get it.
    let spec = format!("address: {}, adoptionPolicy: IfUnowned", scene.address("box"));
    scene.team.apply("Mailbox", "second", &spec).await.expect("it is taken");
    scene.refused("second", "AddressTaken").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_that_does_not_serve_yet_is_waited_for() {
    let scene = Scene::start().await;
    let domain = scene.team.domain("later");
    scene.team.apply("Mailbox", "box", &format!("address: a@{domain}")).await.expect("it is taken");
    let shown = scene.refused("box", "DomainNotServed").await;
    assert_eq!(condition(&shown, "Reconciling").expect("it waits")["status"], "True");
    let another = Team::with(scene.world.cluster, "").await;
    let custom = another.domain("mail");
    scene.team.apply("Mailbox", "foreign", &format!("address: a@{custom}")).await.expect("it is taken");
    // A verified custom domain of another tenant is none of this one's.
    insert_verified(&scene, &another, &custom).await;
    scene.nudge("foreign").await;
    scene.refused("foreign", "DomainNotServed").await;
    scene.world.app.tempmail(&format!("system-domain add {domain}")).await.success();
    // It is looked at again by itself.
    scene.team.wait("mailbox/box", "Ready").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_whose_domain_serves_no_longer_says_so_until_it_does() {
    let scene = Scene::start().await;
    let custom = scene.team.domain("mail");
    insert_verified(&scene, &scene.team, &custom).await;
    // Local parts are reserved on system domains only.
    scene.team.apply("Mailbox", "box", &format!("address: postmaster@{custom}")).await.expect("it is taken");
    scene.team.wait("mailbox/box", "Ready").await;
    let serve = async |serves: bool| {
        let update =
            "UPDATE domain SET serves = $1, verify_status = CASE WHEN $1 THEN 'verified' ELSE 'pending' END
                      WHERE name = $2";
        let update = sqlx::query(update).bind(serves).bind(&custom);
        update.execute(&scene.world.pool()).await.expect("the domain is there");
    };
    serve(false).await;
    scene.nudge("box").await;
    let shown = scene.refused("box", "DomainNotServed").await;
    for kind in ["Accepted", "Reconciling"] {
        assert_eq!(condition(&shown, kind).expect(kind)["status"], "True");
    }
    serve(true).await;
    // It is looked at again by itself.
    scene.team.wait("mailbox/box", "Ready").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_part_that_nobody_can_have_is_refused_with_a_sentence() {
    let scene = Scene::start().await;
    for (name, local_part, why) in
        [("reserved", "postmaster", "reserved on system domains"), ("dots", "a..b", "contains '..'")]
    {
        let spec = format!("address: {}", scene.address(local_part));
        scene.team.apply("Mailbox", name, &spec).await.expect("it is taken");
        let said = message(&scene.refused(name, "InvalidSpec").await);
        assert!(said.contains(why), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_has_as_many_as_it_may() {
    let scene = Scene::with("  limits: {mailboxes: 1}").await;
    scene.ready("first", "").await;
    scene.declare("second", "").await;
    scene.refused("second", "QuotaExceeded").await;
    scene.team.delete("mailbox/first").await;
    scene.nudge("second").await;
    scene.team.wait("mailbox/second", "Ready").await;
}
