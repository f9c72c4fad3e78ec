//! Secrets that can't be written: what objects say of it, and what goes on meanwhile.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::World;
use tempmail_tests::kubernetes::{SharedWorld, Team, condition};
use tempmail_tests::wait::eventually;

use super::{WEBHOOK, annotate, is_refused, look, rows, status_of, value};

const OBJECTS: [&str; 3] = ["apitoken/ci", "webhook/hook", "mailbox/box"];
const ROTATE: &str = "tempmail.dev/rotate-requested-at";

/// What the three objects hold: the token, the webhook's secret, and the mailbox's password.
async fn values(team: &Team<'_>) -> [String; 3] {
    [
        value(team, "ci-token", "token").await,
        value(team, "hook-webhook", "secret").await,
        value(team, "box-mailbox", "password").await,
    ]
}

async fn declare(team: &Team<'_>, world: &SharedWorld) {
    let domain = team.domain("sys");
    world.app.tempmail(&format!("system-domain add {domain}")).await.success();
    team.apply("ApiToken", "ci", "type: Live").await.expect("it is taken");
    team.apply("Webhook", "hook", WEBHOOK).await.expect("it is taken");
    team.apply("Mailbox", "box", &format!("address: box@{domain}")).await.expect("it is taken");
}

async fn are_ready(team: &Team<'_>) {
    for object in OBJECTS {
        team.wait(object, "Ready").await;
    }
}

/// Status of a sign-in to the mailbox.
async fn sign_in(world: &SharedWorld, team: &Team<'_>, password: &str) -> u16 {
    let credentials = json!({"address": format!("box@{}", team.domain("sys")), "password": password});
    world.request(Method::POST, "/api/token").json(&credentials).send().await.status
}

/// What an object says for this reason, and that somebody has to act.
async fn said(team: &Team<'_>, object: &str, reason: &str) -> String {
    let shown = team.wait_for_reason(object, "Ready", reason).await;
    for (kind, truth) in [("Ready", "False"), ("Accepted", "True"), ("Stalled", "True")] {
        assert_eq!(condition(&shown, kind).expect(kind)["status"], truth, "{shown}");
    }
    let stalled = condition(&shown, "Stalled").expect("Stalled");
    assert_eq!(condition(&shown, "Ready").expect("Ready")["message"], stalled["message"]);
    stalled["message"].as_str().expect("a sentence").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_its_owner_made_immutable_is_told_of_and_what_it_holds_works_on() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    declare(&team, world).await;
    are_ready(&team).await;
    let former = values(&team).await;
    for secret in ["ci-token", "hook-webhook", "box-mailbox"] {
        let patch = r#"{"immutable": true}"#;
        team.kubectl(&["patch", "secret", secret, "--type=merge", "-p", patch]).await.expect("it is patched");
    }
    for object in OBJECTS {
        annotate(&team, object, ROTATE, "now").await;
        let said = said(&team, object, "SecretImmutable").await;
        assert!(said.contains("immutable") && said.contains("Delete it"), "{said}");
    }
    assert_eq!(values(&team).await, former);
    assert_eq!(status_of(world, &former[0]).await, 200);
    assert_eq!(sign_in(world, &team, &former[2]).await, 200);
    assert_eq!(rows(world, &team).await, (1, 1));

    team.delete("secret/ci-token").await;
    team.delete("secret/hook-webhook").await;
    team.delete("secret/box-mailbox").await;
    for object in OBJECTS {
        look(&team, object).await;
    }
    are_ready(&team).await;
    let now = values(&team).await;
    assert!(now.iter().zip(&former).all(|(now, former)| now != former), "it was asked for another one");
    assert_eq!(status_of(world, &now[0]).await, 200);
    assert_eq!(sign_in(world, &team, &now[2]).await, 200);
    is_refused(world, &former[0]).await;
    assert_eq!(sign_in(world, &team, &former[2]).await, 401);
}

/// Has the API server refuse the Secrets of the team, by a policy whose message quotes them.
async fn refuse(team: &Team<'_>, world: &SharedWorld) {
    let (name, namespace) = (&team.tenant, team.namespace.name());
    let manifest = format!(
        r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  matchConstraints:
    namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}
    resourceRules:
      - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [secrets]}}
  validations:
    - expression: "false"
      messageExpression: "'it has ' + object.data.map(key, key + ': ' + string(object.data[key])).join(', ')"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, validationActions: [Deny]}}
"#
    );
    world.cluster.apply(&manifest).await.expect("the policy is taken");
    eventually("the policy is enforced", || async {
        let refused = probe(team).await.err()?;
        refused.contains("it has theirs: MQ==").then_some(())
    })
    .await;
}

/// What the API server says to a Secret.
async fn probe(team: &Team<'_>) -> Result<(), String> {
    let probe = ["create", "secret", "generic", "probe", "--from-literal=theirs=1", "--dry-run=server"];
    team.kubectl(&probe).await.map(drop).map_err(|ended| ended.stderr)
}

/// What stands for the three objects in the database.
async fn stored(world: &SharedWorld, team: &Team<'_>) -> Vec<Vec<u8>> {
    sqlx::query_scalar(
        "SELECT k.hash FROM api_token k JOIN tenant t ON t.id = k.tenant WHERE t.name = $1 AND k.revoked_at IS NULL
         UNION ALL
         SELECT w.secret FROM webhook w JOIN tenant t ON t.id = w.tenant WHERE t.name = $1
         UNION ALL
         SELECT b.password_hash::bytea FROM mailbox b JOIN tenant t ON t.id = b.tenant WHERE t.name = $1",
    )
    .bind(&team.tenant)
    .fetch_all(&world.pool())
    .await
    .expect("the rows are there")
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_a_policy_refuses_ends_nothing_and_its_values_are_not_told() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    declare(&team, world).await;
    are_ready(&team).await;
    let former = values(&team).await;
    refuse(&team, world).await;
    let policy = &team.tenant;
    let expected = format!(
        "The API server rejects the Secret (ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denies \
         it). Change the quota, policy or webhook that rejects it. The write is retried every minute."
    );
    for object in OBJECTS {
        annotate(&team, object, ROTATE, "now").await;
        assert_eq!(said(&team, object, "SecretRefused").await, expected);
    }
    assert_eq!(values(&team).await, former);
    assert_eq!(status_of(world, &former[0]).await, 200);
    assert_eq!(sign_in(world, &team, &former[2]).await, 200);

    // New ones have rows that wait; a look at them makes no other ones.
    team.apply("ApiToken", "new", "type: Live").await.expect("it is taken");
    assert_eq!(said(&team, "apitoken/new", "SecretRefused").await, expected);
    let address = format!("address: new@{}", team.domain("sys"));
    team.apply("Mailbox", "new", &address).await.expect("it is taken");
    assert_eq!(said(&team, "mailbox/new", "SecretRefused").await, expected);
    let before = stored(world, &team).await;
    team.apply("ApiToken", "new", "type: Live, onSecretLoss: Stall").await.expect("it is taken");
    team.apply("Mailbox", "new", &format!("{address}, adoptionPolicy: IfUnowned"))
        .await
        .expect("it is taken");
    for object in ["apitoken/new", "mailbox/new"] {
        let looked_at = "--for=jsonpath={.status.observedGeneration}=2";
        team.kubectl(&["wait", object, looked_at, "--timeout=120s"]).await.expect("it is looked at");
        assert_eq!(said(&team, object, "SecretRefused").await, expected);
    }
    let events = async || {
        let get = ["get", "events", "-o", "json"];
        let shown = team.kubectl(&get).await.expect("events are listed");
        serde_json::from_str::<Value>(&shown).expect("JSON")
    };
    assert!(!events().await.to_string().contains("it has "), "an event quotes a value");
    assert_eq!(stored(world, &team).await, before);

    let gone =
        [format!("validatingadmissionpolicybinding/{policy}"), format!("validatingadmissionpolicy/{policy}")];
    for object in &gone {
        team.delete(object).await;
    }
    eventually("the policy is forgotten", || async { probe(&team).await.ok() }).await;
    for object in OBJECTS.into_iter().chain(["apitoken/new", "mailbox/new"]) {
        look(&team, object).await;
        team.wait(object, "Ready").await;
    }
    let now = values(&team).await;
    assert!(now.iter().zip(&former).all(|(now, former)| now != former), "it was asked for another one");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_a_quota_refuses_says_which() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    team.kubectl(&["create", "quota", "few", "--hard=secrets=0"]).await.expect("it is made");
    // Whoever counts what there is may be away.
    let counted = r#"{"status": {"hard": {"secrets": "0"}, "used": {"secrets": "0"}}}"#;
    let patch = ["patch", "quota", "few", "--subresource=status", "--type=merge", "-p", counted];
    team.kubectl(&patch).await.expect("it is patched");
    eventually("the quota is enforced", || async {
        probe(&team).await.err()?.contains("exceeded quota").then_some(())
    })
    .await;
    team.apply("ApiToken", "ci", "type: Live").await.expect("it is taken");
    let said = said(&team, "apitoken/ci", "SecretRefused").await;
    assert!(
        said.contains("(exceeded quota: few, requested: secrets=1, used: secrets=0, limited: secrets=0)"),
        "{said}"
    );
    team.delete("quota/few").await;
    // It is tried again by itself.
    team.wait("apitoken/ci", "Ready").await;
    assert_eq!(status_of(world, &value(&team, "ci-token", "token").await).await, 200);
}
