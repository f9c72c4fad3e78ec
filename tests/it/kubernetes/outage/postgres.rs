//! Postgres away for a minute, while objects of every kind are there, come, change and go.

use std::time::Duration;

use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_crds::{ApiToken, CustomDomain, Mailbox, SystemDomain, Tenant, Webhook};
use tempmail_tests::kubernetes::{Cluster, OperatorProcess, Team, World, condition, secret_value};
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::rows::SYSTEM_DOMAIN;
use tempmail_tests::wait::eventually;
use tokio::time::sleep;
use uuid::Uuid;

/// How long Postgres is away. This is the outage itself; nothing is waited for.
const AWAY: Duration = Duration::from_secs(60);

/// Objects of a kind.
struct Kind {
    resource: fn() -> ApiResource,
    is_namespaced: bool,
    /// The spec of the object of this label, beside its tenant.
    spec: fn(&Team<'_>, &str) -> Value,
    /// The reason of its condition Ready, in the end.
    settles: &'static str,
    /// What of the spec is changed while Postgres is away.
    change: fn() -> Value,
    /// Whether the change reached the row of the object of a uid.
    is_changed: &'static str,
    /// What the name of its Secret ends with.
    secret: Option<&'static str>,
}

/// All there are.
const KINDS: &[Kind] = &[
    Kind {
        resource: || ApiResource::erase::<Tenant>(&()),
        is_namespaced: false,
        spec: |_team, _label| json!({"deletionPolicy": "Delete"}),
        settles: "Ready",
        change: || json!({"limits": {"customDomains": 7}}),
        is_changed: "SELECT EXISTS (SELECT FROM resource r JOIN tenant t ON t.id = r.row_id
                                     WHERE r.uid = $1 AND t.domain_limit = 7)",
        secret: None,
    },
    Kind {
        resource: || ApiResource::erase::<SystemDomain>(&()),
        is_namespaced: false,
        spec: |team, label| json!({"domain": format!("{label}.system.{}.example", team.tenant)}),
        settles: "Ready",
        change: || json!({"sortOrder": 7}),
        is_changed: "SELECT EXISTS (SELECT FROM resource r JOIN domain d ON d.id = r.row_id
                                     WHERE r.uid = $1 AND d.sort_order = 7)",
        secret: None,
    },
    Kind {
        resource: || ApiResource::erase::<CustomDomain>(&()),
        is_namespaced: true,
        spec: |team, label| json!({"domain": team.domain(label)}),
        settles: "DnsLookupFailed",
        change: || json!({"deletionPolicy": "Retain"}),
        is_changed: "SELECT EXISTS (SELECT FROM resource WHERE uid = $1 AND retained)",
        secret: None,
    },
    Kind {
        resource: || ApiResource::erase::<Webhook>(&()),
        is_namespaced: true,
        spec: |_team, label| json!({"url": format!("https://hooks.example.com/{label}")}),
        settles: "Ready",
        change: || json!({"url": "https://hooks.example.com/changed"}),
        is_changed: "SELECT EXISTS (SELECT FROM resource r JOIN webhook w ON w.id = r.row_id
                                     WHERE r.uid = $1 AND w.url = 'https://hooks.example.com/changed')",
        secret: Some("webhook"),
    },
    Kind {
        resource: || ApiResource::erase::<ApiToken>(&()),
        is_namespaced: true,
        spec: |_team, _label| json!({"type": "Pro"}),
        settles: "Ready",
        change: || json!({"expiresAt": "2100-01-01T00:00:00Z"}),
        is_changed: "SELECT EXISTS (SELECT FROM resource r JOIN api_token t ON t.id = r.row_id
                                     WHERE r.uid = $1 AND t.expires_at = '2100-01-01T00:00:00Z')",
        secret: Some("token"),
    },
    Kind {
        resource: || ApiResource::erase::<Mailbox>(&()),
        is_namespaced: true,
        spec: |team, label| json!({"address": format!("{label}.{}@{SYSTEM_DOMAIN}", team.tenant)}),
        settles: "Ready",
        change: || json!({"deletionPolicy": "Retain"}),
        is_changed: "SELECT EXISTS (SELECT FROM resource WHERE uid = $1 AND retained)",
        secret: Some("mailbox"),
    },
];

/// Whether something is there that an object may have stood for.
const IS_THERE: &str = "
    SELECT EXISTS (SELECT FROM tenant WHERE id = $1 AND removed_at IS NULL)
        OR EXISTS (SELECT FROM domain WHERE id = $1 AND removed_at IS NULL AND (tenant IS NOT NULL OR serves))
        OR EXISTS (SELECT FROM webhook WHERE id = $1)
        OR EXISTS (SELECT FROM api_token WHERE id = $1 AND revoked_at IS NULL)
        OR EXISTS (SELECT FROM mailbox WHERE id = $1 AND removed_at IS NULL)";

/// What is there before Postgres goes: one that is left alone, one that is changed and one that is
/// deleted meanwhile.
const BEFORE: [&str; 3] = ["stays", "changes", "goes"];

#[tokio::test(flavor = "multi_thread")]
async fn while_postgres_is_away_no_condition_changes_and_all_settles_after() {
    let world = World::without_operator().await;
    let postgres = PostgresProxy::start().await;
    let url = world.app.database().url_through(postgres.port());
    let operator = OperatorProcess::begin(world.app.config(), &url, world.cluster.kubeconfig(), &[]);
    operator.wait_until_ready().await;
    let team = Team::with(&world.cluster, "  limits: {webhooks: 4}").await;
    let site = Site { world: &world, team: &team };
    for kind in KINDS {
        for label in BEFORE {
            site.create(kind, label).await;
        }
    }
    for kind in KINDS {
        for label in BEFORE {
            site.settles(kind, label).await;
        }
    }
    let before = site.said().await;
    let secrets = site.secrets().await;
    let mut things = Vec::new();
    for kind in KINDS {
        things.push(site.thing(kind, "goes").await);
    }

    postgres.cut();
    for kind in KINDS {
        site.create(kind, "comes").await;
        site.change(kind, "changes").await;
        site.delete(kind, "goes").await;
    }
    sleep(AWAY).await;
    each_kind_was_tried(&operator).await;
    assert_eq!(site.said().await, before);
    assert_eq!(site.secrets().await, secrets);
    for kind in KINDS {
        let comes = site.get(kind, "comes").await.expect("it is there");
        for condition in comes["status"]["conditions"].as_array().expect("conditions") {
            assert_eq!(condition["reason"], "Pending", "only the defaults are there: {comes:#}");
        }
        let goes = site.get(kind, "goes").await.expect("its row is not let go of");
        assert!(goes["metadata"]["deletionTimestamp"].is_string(), "{goes:#}");
    }

    postgres.restore();
    for (kind, thing) in KINDS.iter().zip(things) {
        site.settles(kind, "comes").await;
        site.takes_its_change(kind).await;
        site.is_gone(kind, thing).await;
    }
    for (kind, before) in KINDS.iter().zip(&before) {
        for (label, before) in BEFORE.iter().zip(before).take(2) {
            assert_eq!(&site.said_of(kind, label).await, before, "{label}");
        }
    }
    site.secrets_are_right(&secrets).await;
    assert!(operator.leads().await, "it led all along");
}

/// Returns when Postgres was found away for what came, what changed and what went, of each kind.
async fn each_kind_was_tried(operator: &OperatorProcess) {
    for kind in KINDS {
        let kind = format!("kind=\"{}\"", (kind.resource)().kind);
        eventually(&format!("the failures are counted, {kind}"), async || {
            let metrics = operator.metrics().await;
            let lines = metrics.lines().filter(|line| {
                line.starts_with("tempmail_operator_reconcile_errors_total")
                    && line.contains(&kind)
                    && line.contains("reason=\"PostgresUnavailable\"")
            });
            let failures: f64 = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum();
            (failures >= 3.0).then_some(())
        })
        .await;
    }
}

struct Site<'a> {
    world: &'a World<Cluster>,
    team: &'a Team<'a>,
}

impl Site<'_> {
    fn api(&self, kind: &Kind) -> Api<DynamicObject> {
        let (client, resource) = (self.world.cluster.client(), (kind.resource)());
        if kind.is_namespaced {
            Api::namespaced_with(client, self.team.namespace.name(), &resource)
        } else {
            Api::all_with(client, &resource)
        }
    }

    /// Name of the object of a label: not all kinds have namespaces.
    fn name(&self, label: &str) -> String {
        format!("{label}-{}", self.team.tenant)
    }

    async fn create(&self, kind: &Kind, label: &str) {
        let mut spec = (kind.spec)(self.team, label);
        if kind.is_namespaced {
            spec["tenantRef"] = json!({"name": self.team.tenant});
        }
        let object = DynamicObject::new(&self.name(label), &(kind.resource)()).data(json!({ "spec": spec }));
        self.api(kind).create(&PostParams::default(), &object).await.expect("it is taken");
    }

    async fn change(&self, kind: &Kind, label: &str) {
        let patch = Patch::Merge(json!({"spec": (kind.change)()}));
        self.api(kind).patch(&self.name(label), &PatchParams::default(), &patch).await.expect("it is taken");
    }

    async fn delete(&self, kind: &Kind, label: &str) {
        self.api(kind).delete(&self.name(label), &DeleteParams::default()).await.expect("it is deleted");
    }

    async fn get(&self, kind: &Kind, label: &str) -> Option<Value> {
        let object = self.api(kind).get_opt(&self.name(label)).await.expect("the API server answers");
        object.map(|object| serde_json::to_value(object).expect("it is JSON"))
    }

    /// Returns when all is said of the object as it is now.
    async fn settles(&self, kind: &Kind, label: &str) {
        eventually(&format!("{} {label} settles", (kind.resource)().kind), async || {
            let object = self.get(kind, label).await?;
            let is_seen = object["status"]["observedGeneration"] == object["metadata"]["generation"];
            let reason = &condition(&object, "Ready")?["reason"];
            (is_seen && *reason == kind.settles).then_some(())
        })
        .await;
    }

    async fn takes_its_change(&self, kind: &Kind) {
        self.settles(kind, "changes").await;
        assert!(self.holds(kind.is_changed, self.uid(kind, "changes").await).await, "{}", kind.is_changed);
    }

    async fn is_gone(&self, kind: &Kind, thing: Uuid) {
        let what = format!("{} goes", (kind.resource)().kind);
        eventually(&what, async || self.get(kind, "goes").await.is_none().then_some(())).await;
        assert!(!self.holds(IS_THERE, thing).await, "{what}, and its row stays");
    }

    /// Condition, status, reason and time of what is said of each object that was there before.
    async fn said(&self) -> Vec<Vec<Value>> {
        let mut said = Vec::new();
        for kind in KINDS {
            let mut of_kind = Vec::new();
            for label in BEFORE {
                of_kind.push(self.said_of(kind, label).await);
            }
            said.push(of_kind);
        }
        said
    }

    async fn said_of(&self, kind: &Kind, label: &str) -> Value {
        let object = self.get(kind, label).await.expect("it is there");
        let conditions = object["status"]["conditions"].as_array().expect("conditions").iter();
        let said = conditions
            .map(|one| json!([one["type"], one["status"], one["reason"], one["lastTransitionTime"]]));
        json!([object["metadata"]["name"], said.collect::<Vec<_>>()])
    }

    /// The objects' Secrets, with their values, by name.
    async fn secrets(&self) -> Vec<Value> {
        let secrets: Api<k8s_openapi::api::core::v1::Secret> = self.team.namespace.api();
        let secrets = secrets.list(&ListParams::default()).await.expect("the API server lists them");
        let mut secrets: Vec<Value> =
            secrets.iter().map(|secret| serde_json::to_value(secret).expect("it is JSON")).collect();
        secrets.sort_by_key(|secret| secret["metadata"]["name"].to_string());
        secrets
    }

    /// Those of what stayed are what they were, and those of all that is there now work; there are no
    /// others.
    async fn secrets_are_right(&self, before: &[Value]) {
        let name = |kind: &str, label: &str| format!("{}-{kind}", self.name(label));
        let mut expected: Vec<String> = KINDS
            .iter()
            .filter_map(|kind| kind.secret)
            .flat_map(|kind| ["stays", "changes", "comes"].map(|label| name(kind, label)))
            .collect();
        expected.sort();
        // The controller manager deletes those of what is gone.
        let after = eventually("the Secrets are those of the objects", async || {
            let secrets = self.secrets().await;
            let names = secrets.iter().filter_map(|secret| secret["metadata"]["name"].as_str());
            names.eq(expected.iter().map(String::as_str)).then_some(secrets)
        })
        .await;
        for secret in before {
            let is_same = |other: &&Value| other["metadata"]["name"] == secret["metadata"]["name"];
            if let Some(now) = after.iter().find(is_same) {
                assert_eq!(now["data"], secret["data"], "no second secret is made");
            } else {
                assert!(!self.works(secret).await, "{}", secret["metadata"]["name"]);
            }
        }
        for secret in &after {
            assert!(self.works(secret).await, "{}", secret["metadata"]["name"]);
        }
    }

    /// Whether the value of a Secret is taken; a webhook's is shown to nobody here.
    async fn works(&self, secret: &Value) -> bool {
        let value = |key: &str| secret_value(secret, key);
        if let Some(token) = value("token") {
            let request = self.world.request(Method::GET, "/pro/api/domains").bearer(&token);
            return request.send().await.status == 200;
        }
        if let (Some(address), Some(password)) = (value("address"), value("password")) {
            let sign_in = json!({"address": address, "password": password});
            return self.world.request(Method::POST, "/api/token").json(&sign_in).send().await.status == 200;
        }
        let id = secret["metadata"]["ownerReferences"][0]["uid"].as_str().expect("an owner");
        let has_webhook = "SELECT EXISTS (SELECT FROM resource r JOIN webhook w ON w.id = r.row_id
                                           WHERE r.uid = $1 AND w.active)";
        self.holds(has_webhook, id.parse().expect("a UUID")).await
    }

    async fn uid(&self, kind: &Kind, label: &str) -> Uuid {
        let object = self.get(kind, label).await.expect("it is there");
        object["metadata"]["uid"].as_str().expect("a uid").parse().expect("a UUID")
    }

    /// The id of the object's row.
    async fn thing(&self, kind: &Kind, label: &str) -> Uuid {
        sqlx::query_scalar("SELECT row_id FROM resource WHERE uid = $1")
            .bind(self.uid(kind, label).await)
            .fetch_one(&self.world.app.pool)
            .await
            .expect("it has a row")
    }

    async fn holds(&self, statement: &'static str, of: Uuid) -> bool {
        sqlx::query_scalar(statement)
            .bind(of)
            .fetch_one(&self.world.app.pool)
            .await
            .expect("Postgres answers")
    }
}
