//! Everything that there is of a team: objects, rows and Secrets; what differs from team to team is
//! left out.

use reqwest::Method;
use serde_json::{Map, Value, json};
use tempmail_tests::kubernetes::{Cluster, Team, World, secret_value};

/// Kinds without one, whose objects have the name of the tenant.
const CLUSTER_WIDE: [&str; 2] = ["tenants", "systemdomains"];
/// Kinds in a namespace.
const NAMESPACED: [&str; 4] = ["customdomains", "webhooks", "apitokens", "mailboxes"];

/// What there is.
#[derive(Debug, PartialEq)]
pub(super) struct Picture {
    objects: Vec<Value>,
    secrets: Vec<Value>,
    rows: Value,
}

impl Picture {
    pub(super) async fn of(team: &Team<'_>, world: &World<Cluster>) -> Self {
        let namespace = team.namespace.name();
        let mut objects = Vec::new();
        let named =
            CLUSTER_WIDE.map(|plural| format!("{plural}?fieldSelector=metadata.name={}", team.tenant));
        let others = NAMESPACED.map(|plural| format!("namespaces/{namespace}/{plural}"));
        for path in named.iter().chain(&others) {
            let path = &format!("/apis/tempmail.dev/v1alpha1/{path}");
            objects.extend(list(world, path).await.iter().map(|object| anonymous(&told(object), team)));
        }
        let secrets = list(world, &format!("/api/v1/namespaces/{namespace}/secrets")).await;
        let secrets = secrets.iter().map(|secret| anonymous(&outline(secret), team)).collect();
        let rows = anonymous(&rows(team, world).await, team);
        Self { objects, secrets, rows }
    }
}

/// What an object tells.
fn told(object: &Value) -> Value {
    json!({
        "kind": object["kind"], "name": object["metadata"]["name"], "status": object["status"],
        "finalizers": object["metadata"]["finalizers"],
    })
}

/// A Secret without its values.
fn outline(secret: &Value) -> Value {
    let keys: Vec<&String> = secret["data"].as_object().into_iter().flat_map(Map::keys).collect();
    json!({
        "name": secret["metadata"]["name"], "keys": keys,
        "owners": secret["metadata"]["ownerReferences"].as_array().map(Vec::len),
    })
}

/// The rows of the team's tenants, whichever there were, and of its system domains; and those that no
/// object has.
async fn rows(team: &Team<'_>, world: &World<Cluster>) -> Value {
    let statement = "
        WITH own AS (SELECT id FROM tenant WHERE name = $2 OR name LIKE $2 || '@%'),
        thing AS (
            SELECT 'tenant' AS kind, id FROM tenant WHERE id IN (SELECT id FROM own) AND removed_at IS NULL
            UNION ALL SELECT 'domain', id FROM domain WHERE tenant IN (SELECT id FROM own) AND removed_at IS NULL
            UNION ALL SELECT 'system domain', id FROM domain WHERE tenant IS NULL AND serves AND name LIKE '%.' || $2 || '.example'
            UNION ALL SELECT 'mailbox', id FROM mailbox WHERE tenant IN (SELECT id FROM own) AND removed_at IS NULL
            UNION ALL SELECT 'webhook', id FROM webhook WHERE tenant IN (SELECT id FROM own)
            UNION ALL SELECT 'token', id FROM api_token WHERE tenant IN (SELECT id FROM own) AND revoked_at IS NULL
        )
        SELECT jsonb_build_object(
            'things', (SELECT jsonb_object_agg(kind, count) FROM (SELECT kind, count(*) FROM thing GROUP BY kind) t),
            'orphans', (SELECT count(*) FROM thing WHERE id NOT IN (SELECT row_id FROM resource WHERE row_id IS NOT NULL)),
            'objects', (SELECT jsonb_agg(jsonb_build_array(kind, name, row_id IS NOT NULL, missing_since IS NULL) ORDER BY kind)
                        FROM resource WHERE namespace = $1 OR name = $2)
        )::text";
    let rows: String = sqlx::query_scalar(statement)
        .bind(team.namespace.name())
        .bind(&team.tenant)
        .fetch_one(&world.app.pool)
        .await
        .expect("Postgres answers");
    serde_json::from_str(&rows).expect("it is JSON")
}

/// Without what is another for each team, or at each time.
fn anonymous(value: &Value, team: &Team<'_>) -> Value {
    let is_own = |key: &str| {
        key.ends_with("Id")
            || key.ends_with("At")
            || key.ends_with("Time")
            || matches!(key, "deadline" | "usage" | "hint")
    };
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, value)| {
                    (key.clone(), if is_own(key) { json!("*") } else { anonymous(value, team) })
                })
                .collect(),
        ),
        Value::Array(items) => items.iter().map(|item| anonymous(item, team)).collect(),
        Value::String(text) if text.starts_with("tempmail-verify=") => json!("*"),
        Value::String(text) => {
            json!(text.replace(&team.tenant, "team").replace(team.namespace.name(), "own"))
        }
        other => other.clone(),
    }
}

/// Every token and password in the team's Secrets is taken.
pub(super) async fn works(team: &Team<'_>, world: &World<Cluster>) {
    for secret in list(world, &format!("/api/v1/namespaces/{}/secrets", team.namespace.name())).await {
        let value = |key: &str| secret_value(&secret, key);
        if let Some(token) = value("token") {
            world.request(Method::GET, "/pro/api/domains").bearer(&token).send().await.expect(200);
        }
        if let (Some(address), Some(password)) = (value("address"), value("password")) {
            let sign_in = json!({ "address": address, "password": password });
            world.request(Method::POST, "/api/token").json(&sign_in).send().await.expect(200);
        }
    }
}

async fn list(world: &World<Cluster>, path: &str) -> Vec<Value> {
    let request = hyper::Request::get(path).body(Vec::new()).expect("a request");
    let list: Value = world.cluster.client().request(request).await.expect("the API server answers");
    let mut items = list["items"].as_array().cloned().unwrap_or_default();
    let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).unwrap_or_default();
    for item in &mut items {
        item["kind"] = json!(kind);
    }
    items
}
