//! Secrets of objects: never taken over, written before what they open is, and left alone while
//! nothing changes.

mod refused;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::kubernetes::{ApiRequest, Team, Verb, When, condition, secret_value};
use tempmail_tests::wait::eventually;
use tempmail_tests::{ApiProxy, World};

/// The value of a key in a Secret of the team.
pub(super) async fn value(team: &Team<'_>, name: &str, key: &str) -> String {
    let secret = team.get(&format!("secret/{name}")).await;
    secret_value(&secret, key).unwrap_or_else(|| panic!("no {key} in {secret}"))
}

/// Puts a value into a Secret of the team, as its owner may.
pub(super) async fn swap(team: &Team<'_>, name: &str, key: &str, value: &str) {
    let patch = json!({"data": {key: STANDARD.encode(value)}}).to_string();
    team.kubectl(&["patch", "secret", name, "--type=merge", "-p", &patch]).await.expect("it is patched");
}

/// Gives an object an annotation; one that the operator does not know makes it look.
pub(super) async fn annotate(team: &Team<'_>, object: &str, name: &str, value: &str) {
    let annotation = format!("{name}={value}");
    team.kubectl(&["annotate", "--overwrite", object, &annotation]).await.expect("it is annotated");
}

/// Has the operator look at an object.
pub(super) async fn look(team: &Team<'_>, object: &str) {
    annotate(team, object, "example.com/look", &uuid::Uuid::new_v4().to_string()).await;
}

/// What `/v1` answers to a live token.
pub(super) async fn status_of<C>(world: &World<C>, live: &str) -> u16 {
    world.request(Method::GET, "/v1/tokens").live(live).send().await.status
}

/// Waits until `/v1` refuses a live token.
pub(super) async fn is_refused<C>(world: &World<C>, live: &str) {
    eventually("the token is refused", || async { (status_of(world, live).await == 401).then_some(()) })
        .await;
}

/// How many rows of `api_token` and `webhook` objects of the team's tenant have.
pub(super) async fn rows<C>(world: &World<C>, team: &Team<'_>) -> (i64, i64) {
    sqlx::query_as(
        "SELECT (SELECT count(*) FROM api_token k WHERE k.tenant = t.id AND k.revoked_at IS NULL),
                (SELECT count(*) FROM webhook w WHERE w.tenant = t.id)
         FROM tenant t WHERE t.name = $1",
    )
    .bind(&team.tenant)
    .fetch_one(&world.pool())
    .await
    .expect("the rows are counted")
}

/// A Secret that somebody else made.
async fn foreign(team: &Team<'_>, name: &str) -> Value {
    team.kubectl(&["create", "secret", "generic", name, "--from-literal=theirs=1"])
        .await
        .expect("it is made");
    team.get(&format!("secret/{name}")).await
}

const WEBHOOK: &str = "url: 'https://hooks.example.com/in'";

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_somebody_else_is_left_alone_and_nothing_is_made() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let (theirs, labelled) = (foreign(&team, "ci-token").await, foreign(&team, "hook-webhook").await);
    team.apply("ApiToken", "ci", "type: Live").await.expect("it is taken");
    team.apply("Webhook", "hook", WEBHOOK).await.expect("it is taken");
    for object in ["apitoken/ci", "webhook/hook"] {
        let shown = team.wait_for_reason(object, "Accepted", "SecretConflict").await;
        assert_eq!(condition(&shown, "Ready").expect("Ready")["status"], "False");
        assert_eq!(condition(&shown, "Stalled").expect("Stalled")["status"], "True");
    }
    assert_eq!(team.get("secret/ci-token").await, theirs);
    assert_eq!(team.get("secret/hook-webhook").await, labelled);
    assert_eq!(rows(world, &team).await, (0, 0));

    // The label alone makes nothing the object's own.
    let uid = team.get("apitoken/ci").await["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let label = format!("tempmail.dev/owner-uid={uid}");
    team.kubectl(&["label", "secret", "ci-token", &label]).await.expect("it is labelled");
    let theirs = team.get("secret/ci-token").await;
    look(&team, "apitoken/ci").await;
    team.kubectl(&["delete", "secret", "hook-webhook"]).await.expect("it goes");
    look(&team, "webhook/hook").await;
    team.wait("webhook/hook", "Ready").await;
    assert_eq!(team.get("secret/ci-token").await, theirs);
    assert_eq!(rows(world, &team).await, (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_objects_of_one_secret_do_not_take_it_from_each_other() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    team.apply("ApiToken", "one", "type: Live, secret: {name: shared}").await.expect("it is taken");
    team.wait("apitoken/one", "Ready").await;
    let token = value(&team, "shared", "token").await;
    team.apply("Webhook", "two", &format!("{WEBHOOK}, secret: {{name: shared}}")).await.expect("it is taken");
    team.wait_for_reason("webhook/two", "Accepted", "SecretConflict").await;
    assert_eq!(value(&team, "shared", "token").await, token);
    assert_eq!(status_of(world, &token).await, 200);
}

/// A world of the test's own whose operator speaks through a proxy, and a team in it.
async fn through_proxy(world: &mut World<tempmail_tests::Cluster>) -> ApiProxy {
    let proxy = ApiProxy::start(&world.cluster).await;
    world.app.start_operator(proxy.client());
    proxy
}

fn writes_secret(request: &ApiRequest) -> bool {
    request.resource == "secrets" && request.is_write()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_interrupted_anywhere_touches_nothing_of_others_and_comes_to_an_end() {
    let mut world = World::start().await;
    let proxy = through_proxy(&mut world).await;
    let cluster = &world.cluster;
    let team = Team::with(cluster, "").await;

    // A Secret of that name comes between the look and the write.
    proxy.hold(writes_secret);
    team.apply("ApiToken", "late", "type: Live").await.expect("it is taken");
    team.apply("Webhook", "late", WEBHOOK).await.expect("it is taken");
    eventually("both Secrets are about to be written", || async {
        let held = proxy.requests().into_iter().filter(writes_secret).count();
        (held >= 2).then_some(())
    })
    .await;
    let (token, webhook) = (foreign(&team, "late-token").await, foreign(&team, "late-webhook").await);
    proxy.release();
    team.wait_for_reason("apitoken/late", "Accepted", "SecretConflict").await;
    team.wait_for_reason("webhook/late", "Accepted", "SecretConflict").await;
    assert_eq!(team.get("secret/late-token").await, token);
    assert_eq!(team.get("secret/late-webhook").await, webhook);
    let active: i64 = sqlx::query_scalar(
        "SELECT (SELECT count(*) FROM api_token k JOIN tenant t ON t.id = k.tenant WHERE t.name = $1 AND k.active)
              + (SELECT count(*) FROM webhook w JOIN tenant t ON t.id = w.tenant WHERE t.name = $1 AND w.active)",
    )
    .bind(&team.tenant)
    .fetch_one(&world.pool())
    .await
    .expect("they are counted");
    assert_eq!(active, 0, "nobody has what opens them");
    team.kubectl(&["delete", "secret", "late-token", "late-webhook"]).await.expect("they go");
    for object in ["apitoken/late", "webhook/late"] {
        look(&team, object).await;
        team.wait(object, "Ready").await;
    }

    // At rest nothing is written.
    let asked = proxy.asked();
    for object in ["apitoken/late", "webhook/late"] {
        look(&team, object).await;
    }
    eventually("both are looked at", || async {
        let reads = &proxy.requests()[asked..];
        let looked =
            |name: &str| reads.iter().any(|it| it.verb == Verb::Get && it.name.as_deref() == Some(name));
        (looked("late-token") && looked("late-webhook")).then_some(())
    })
    .await;
    team.apply("ApiToken", "next", "type: Live").await.expect("it is taken");
    team.wait("apitoken/next", "Ready").await;
    let others = proxy.writes_since(asked);
    let others: Vec<_> = others.iter().filter(|it| !is_of_next(it)).collect();
    assert!(others.is_empty(), "{others:?}");

    let late = value(&team, "late-token", "token").await;

    // The operator is killed before or after each of its writes.
    for (nth, when) in [1, 2, 3].into_iter().flat_map(|nth| [(nth, When::Before), (nth, When::After)]) {
        let name = format!("killed-{nth}-{when:?}").to_lowercase();
        let mut reached = proxy.at_write(nth, when, || {});
        team.apply("ApiToken", &name, "type: Live").await.expect("it is taken");
        reached.comes().await;
        world.app.start_operator(proxy.client());
        team.wait(&format!("apitoken/{name}"), "Ready").await;
        let token = value(&team, &format!("{name}-token"), "token").await;
        assert_eq!(status_of(&world, &token).await, 200, "{name}");
    }
    assert_eq!(rows(&world, &team).await, (8, 1), "each object has one row");

    // An operator that has just begun learns of the tenants last.
    proxy.hold(|it| it.resource == "tenants" && it.query.contains("limit=500"));
    let asked = proxy.asked();
    world.app.start_operator(proxy.client());
    eventually("it looks at the objects", || async {
        let looked = |it: &ApiRequest| it.name.as_deref() == Some("late-token");
        proxy.requests()[asked..].iter().any(looked).then_some(())
    })
    .await;
    eventually("it lists the tenants", || async {
        let lists = |it: &ApiRequest| it.resource == "tenants" && it.query.contains("limit=500");
        proxy.requests()[asked..].iter().any(lists).then_some(())
    })
    .await;
    proxy.release();
    look(&team, "apitoken/late").await;
    team.apply("ApiToken", "last", "type: Live").await.expect("it is taken");
    team.wait("apitoken/last", "Ready").await;
    assert_eq!(value(&team, "late-token", "token").await, late, "nothing ends meanwhile");
    assert_eq!(status_of(&world, &late).await, 200);
}

/// Whether it writes the object `next` or its Secret.
fn is_of_next(request: &ApiRequest) -> bool {
    request.path.contains("/next") || String::from_utf8_lossy(&request.body).contains("next-token")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_goes_with_its_object() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    team.apply("ApiToken", "ci", "type: Live").await.expect("it is taken");
    team.wait("apitoken/ci", "Ready").await;
    team.delete("apitoken/ci").await;
    let secrets = team.namespace.api::<Secret>();
    eventually("the Secret is collected", || async {
        secrets.get_opt("ci-token").await.expect("an answer").is_none().then_some(())
    })
    .await;
}
