//! An operator that is killed and started again, and what has to be the same in the end.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Map, Value, json};
use tempmail_tests::kubernetes::{ApiProxy, Cluster, Installation, OperatorProcess, Team, secret_value};
use tempmail_tests::wait::DEADLINE;
use tokio::time::{Instant, sleep};

use super::super::object_kinds::KINDS;
use super::action::UserAction;
use super::kill::{Kill, KillPoint, StatementCounter};

/// Time between two snapshots.
const POLL: Duration = Duration::from_millis(100);

/// An operator as a process, behind a proxy, and a database whose statements can be stopped.
pub(super) struct CrashFixture {
    // Dropped in this order: the operator, then what it uses.
    operator: OperatorProcess,
    proxy: ApiProxy,
    statements: StatementCounter,
    installation: Installation<Cluster>,
}

impl CrashFixture {
    pub(super) async fn start() -> Self {
        let installation = Installation::without_operator().await;
        let statements = StatementCounter::install(&installation.app.pool).await;
        let proxy = ApiProxy::start(&installation.cluster).await;
        let operator = OperatorProcess::start_leader_behind(&proxy, &installation).await;
        Self { operator, proxy, statements, installation }
    }

    /// Kills the operator at the first write of an action, then at the second, and so on.
    pub(super) async fn kill_at_each_write(&self, action: UserAction, point: KillPoint) {
        let reference = self.reference(action).await;
        let mut nth = 1;
        while self.kill(action, nth, point, &reference).await {
            nth += 1;
        }
        assert!(nth > 1, "{action:?} has no write");
    }

    /// Kills the operator after its `nth` statement of an action.
    pub(super) async fn kill_after_statement(&self, action: UserAction, nth: usize) {
        let reference = self.reference(action).await;
        let was_killed = self.kill(action, nth, KillPoint::Statement, &reference).await;
        assert!(was_killed, "{action:?} has no statement {nth}");
    }

    /// The team of an action during which the operator is not killed.
    async fn reference(&self, action: UserAction) -> Team {
        let team = Team::without_tenant(&self.installation.cluster).await;
        action.prepare(&team).await;
        action.start(&team).await;
        action.finish(&team).await;
        team
    }

    /// Whether there was such a write.
    async fn kill(&self, action: UserAction, nth: usize, point: KillPoint, reference: &Team) -> bool {
        let team = Team::without_tenant(&self.installation.cluster).await;
        action.prepare(&team).await;
        let what = format!("{action:?}, killed at write {nth} ({point:?})");
        let kill = match point {
            KillPoint::Request(point) => Kill::at_request(&team, nth, point, &self.proxy, &self.operator),
            KillPoint::Statement => Kill::at_statement(&self.statements, nth, &self.operator).await,
        };
        action.start(&team).await;
        self.wait_until_same(reference, &team, || kill.has_happened(), &what).await;
        let was_killed = kill.disarm().await;
        if was_killed {
            self.operator.restart_as_leader(&self.installation).await;
            self.wait_until_same(reference, &team, || false, &what).await;
        }
        assert_credentials_work(&team, &self.installation).await;
        was_killed
    }

    /// Returns when a team has what the reference has, or the operator was killed. Both are looked at each time, since what
    /// follows an action, such as the end of its rows, also takes its time without a kill.
    async fn wait_until_same(
        &self,
        reference: &Team,
        team: &Team,
        was_killed: impl Fn() -> bool,
        what: &str,
    ) {
        let give_up = Instant::now() + DEADLINE;
        while !was_killed() {
            let expected = Snapshot::take(reference, &self.installation).await;
            let snapshot = Snapshot::take(team, &self.installation).await;
            if snapshot == expected {
                return;
            }
            assert!(Instant::now() < give_up, "{what}:\n{}", snapshot.differences(&expected));
            sleep(POLL).await;
        }
    }
}

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
        for kind in KINDS {
            if kind.is_namespaced {
                let list = team.list(&kind.name.to_lowercase()).await;
                objects.extend(list.into_iter().map(|one| (kind.name, one)));
            } else {
                let object = team.get_opt(&kind.object(&team.tenant)).await;
                objects.extend(object.map(|one| (kind.name, one)));
            }
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
