//! Everything that there is of a team: objects, rows and Secrets, without what differs from team to team.

use reqwest::Method;
use serde_json::{Map, Value, json};
use tempmail_tests::kubernetes::{Cluster, Installation, Team, secret_value};

/// Kinds that tempmail defines, by their names for [`Team`]; those without a namespace first.
const CLUSTER_WIDE: [&str; 2] = ["tenant", "systemdomain"];
const NAMESPACED: [&str; 4] = ["customdomain", "webhook", "apitoken", "mailbox"];

/// What there is of a team.
#[derive(PartialEq)]
pub(super) struct Snapshot {
    objects: Vec<Value>,
    secrets: Vec<Value>,
    rows: Value,
}

impl Snapshot {
    pub(super) async fn take(team: &Team, installation: &Installation<Cluster>) -> Self {
        let mut objects = Vec::new();
        for kind in CLUSTER_WIDE {
            objects.extend(team.get_opt(&format!("{kind}/{}", team.tenant)).await.map(|one| (kind, one)));
        }
        for kind in NAMESPACED {
            objects.extend(team.list(kind).await.into_iter().map(|one| (kind, one)));
        }
        let objects = objects.iter().map(|(kind, one)| anonymous(&outline(kind, one), team)).collect();
        let secrets = team.list("secret").await;
        let secrets = secrets.iter().map(|secret| anonymous(&secret_outline(secret), team)).collect();
        let rows = anonymous(&rows(team, installation).await, team);
        Self { objects, secrets, rows }
    }

    /// A line for each object, Secret and count of rows that is not as expected, and for each that is expected instead.
    pub(super) fn differences(&self, expected: &Self) -> String {
        let (there, expected) = (self.parts(), expected.parts());
        let surplus = there.iter().filter(|part| !expected.contains(part));
        let missing = expected.iter().filter(|part| !there.contains(part));
        let surplus = surplus.map(|part| format!("there is: {part}\n"));
        surplus.chain(missing.map(|part| format!("expected: {part}\n"))).collect()
    }

    fn parts(&self) -> Vec<String> {
        self.objects.iter().chain(&self.secrets).chain([&self.rows]).map(Value::to_string).collect()
    }
}

/// Status and finalizers of an object.
fn outline(kind: &str, object: &Value) -> Value {
    json!({
        "kind": kind, "name": object["metadata"]["name"], "status": object["status"],
        "finalizers": object["metadata"]["finalizers"],
    })
}

/// A Secret without its values.
fn secret_outline(secret: &Value) -> Value {
    let keys: Vec<&String> = secret["data"].as_object().into_iter().flat_map(Map::keys).collect();
    json!({
        "name": secret["metadata"]["name"], "keys": keys,
        "owners": secret["metadata"]["ownerReferences"].as_array().map(Vec::len),
    })
}

/// Counts of the rows of the team's tenants, also of former ones, and of its system domains; and how many
/// of them no object has.
async fn rows(team: &Team, installation: &Installation<Cluster>) -> Value {
    let statement = "
        WITH own AS (SELECT id FROM tenant WHERE name = $2 OR name LIKE $2 || '@%'),
        row_of AS (
            SELECT 'tenant' AS kind, id FROM tenant WHERE id IN (SELECT id FROM own) AND removed_at IS NULL
            UNION ALL SELECT 'domain', id FROM domain WHERE tenant IN (SELECT id FROM own) AND removed_at IS NULL
            UNION ALL SELECT 'system domain', id FROM domain WHERE tenant IS NULL AND serves AND name LIKE '%.' || $2 || '.example'
            UNION ALL SELECT 'mailbox', id FROM mailbox WHERE tenant IN (SELECT id FROM own) AND removed_at IS NULL
            UNION ALL SELECT 'webhook', id FROM webhook WHERE tenant IN (SELECT id FROM own)
            UNION ALL SELECT 'token', id FROM api_token WHERE tenant IN (SELECT id FROM own) AND revoked_at IS NULL
        )
        SELECT jsonb_build_object(
            'rows', (SELECT jsonb_object_agg(kind, count) FROM (SELECT kind, count(*) FROM row_of GROUP BY kind) t),
            'orphans', (SELECT count(*) FROM row_of WHERE id NOT IN (SELECT row_id FROM resource WHERE row_id IS NOT NULL)),
            'objects', (SELECT jsonb_agg(jsonb_build_array(kind, name, row_id IS NOT NULL, missing_since IS NULL) ORDER BY kind)
                        FROM resource WHERE namespace = $1 OR name = $2)
        )::text";
    let rows: String = sqlx::query_scalar(statement)
        .bind(team.namespace.name())
        .bind(&team.tenant)
        .fetch_one(&installation.app.pool)
        .await
        .expect("Postgres answers");
    serde_json::from_str(&rows).expect("it is JSON")
}

/// A value without what differs from team to team, or from time to time.
fn anonymous(value: &Value, team: &Team) -> Value {
    let differs = |key: &str| {
        key.ends_with("Id")
            || key.ends_with("At")
            || key.ends_with("Time")
            || matches!(key, "deadline" | "usage" | "hint")
    };
    match value {
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                (key.clone(), if differs(key) { json!("*") } else { anonymous(value, team) })
            };
            Value::Object(fields.iter().map(field).collect())
        }
        Value::Array(items) => items.iter().map(|item| anonymous(item, team)).collect(),
        Value::String(text) if text.starts_with("tempmail-verify=") => json!("*"),
        Value::String(text) => {
            json!(text.replace(&team.tenant, "team").replace(team.namespace.name(), "own"))
        }
        other => other.clone(),
    }
}

/// Asserts that every token and password in the team's Secrets is accepted.
pub(super) async fn assert_credentials_work(team: &Team, installation: &Installation<Cluster>) {
    for secret in team.list("secret").await {
        let value = |key: &str| secret_value(&secret, key);
        if let Some(token) = value("token") {
            installation.request(Method::GET, "/pro/api/domains").bearer(&token).send().await.expect(200);
        }
        if let (Some(address), Some(password)) = (value("address"), value("password")) {
            installation.sign_in(&address, &password).await.expect(200);
        }
    }
}
