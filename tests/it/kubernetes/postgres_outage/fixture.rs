//! Objects of every kind before, during and after an outage.

use serde_json::{Value, json};
use tempmail_tests::kubernetes::{Cluster, Installation, Team, assert_conditions, secret_value};
use tempmail_tests::wait::eventually;
use uuid::Uuid;

use super::super::object_kinds::{KINDS, ObjectKind};

/// Labels of the objects before the outage: one is not touched during it, one is changed and one is
/// deleted.
pub(super) const BEFORE: [&str; 3] = ["stays", "changes", "goes"];

/// A statement: whether there is a row of an id that an object may have.
const ROW_EXISTS: &str = "
    SELECT EXISTS (SELECT FROM tenant WHERE id = $1 AND removed_at IS NULL)
        OR EXISTS (SELECT FROM domain WHERE id = $1 AND removed_at IS NULL AND (tenant IS NOT NULL OR serves))
        OR EXISTS (SELECT FROM webhook WHERE id = $1)
        OR EXISTS (SELECT FROM api_token WHERE id = $1 AND revoked_at IS NULL)
        OR EXISTS (SELECT FROM mailbox WHERE id = $1 AND removed_at IS NULL)";

pub(super) struct OutageFixture<'a> {
    pub(super) installation: &'a Installation<Cluster>,
    pub(super) team: &'a Team,
}

impl OutageFixture<'_> {
    /// Name of the object of a label: unique in the cluster, since not all kinds have namespaces.
    fn name(&self, label: &str) -> String {
        format!("{label}-{}", self.team.tenant)
    }

    fn object(&self, kind: &ObjectKind, label: &str) -> String {
        kind.object(&self.name(label))
    }

    /// Creates objects of each kind, and waits until they are settled.
    pub(super) async fn create_objects(&self, labels: &[&str]) {
        for kind in &KINDS {
            for label in labels {
                self.create(kind, label).await;
            }
        }
        for kind in &KINDS {
            for label in labels {
                self.wait_until_settled(kind, label).await;
            }
        }
    }

    async fn create(&self, kind: &ObjectKind, label: &str) {
        kind.declare(self.team, &self.name(label), label).await;
    }

    /// Creates an object of each kind, changes one and deletes one.
    pub(super) async fn create_change_and_delete(&self) {
        for kind in &KINDS {
            self.create(kind, "comes").await;
            self.team.patch(&self.object(kind, "changes"), &json!({"spec": (kind.change)()})).await;
            self.team.start_deletion(&self.object(kind, "goes")).await;
        }
    }

    /// Asserts that the operator has done nothing for what was created and deleted, and that what was created says why.
    pub(super) async fn assert_nothing_is_carried_out(&self) {
        for kind in &KINDS {
            let object = self.object(kind, "comes");
            let created = self.team.wait_for_reason(&object, "Ready", "PostgresUnavailable").await;
            let expected = [("Ready", "Unknown"), ("Accepted", "Unknown"), ("Reconciling", "True")];
            assert_conditions(&created, &expected);
            assert!(created["status"]["observedGeneration"].is_null(), "no spec is observed: {created:#}");
            let deleted = self.team.get(&self.object(kind, "goes")).await;
            assert!(deleted["metadata"]["deletionTimestamp"].is_string(), "{deleted:#}");
        }
    }

    /// Waits until an object has its final conditions.
    pub(super) async fn wait_until_settled(&self, kind: &ObjectKind, label: &str) {
        kind.wait_until_settled(self.team, &self.name(label)).await;
    }

    /// Waits until the object that was changed is settled, and asserts that its row is changed.
    pub(super) async fn wait_until_changed(&self, kind: &ObjectKind) {
        self.wait_until_settled(kind, "changes").await;
        let uid = self.uid(kind, "changes").await;
        assert!(self.holds(kind.is_changed, uid).await, "{}", kind.is_changed);
    }

    /// Waits until the object that was deleted is gone, and asserts that its row is gone, too.
    pub(super) async fn wait_until_deleted(&self, kind: &ObjectKind, row: Uuid) {
        self.team.wait_until_deleted(&self.object(kind, "goes")).await;
        assert!(!self.holds(ROW_EXISTS, row).await, "the row of a {} stays", kind.name);
    }

    /// Type, status, reason and time of the conditions of each object before the outage.
    pub(super) async fn conditions(&self) -> Vec<Value> {
        self.conditions_of(&BEFORE).await
    }

    pub(super) async fn conditions_of(&self, labels: &[&str]) -> Vec<Value> {
        let mut all = Vec::new();
        for kind in &KINDS {
            for label in labels {
                let object = self.object(kind, label);
                let shown = self.team.get(&object).await;
                let conditions = shown["status"]["conditions"].as_array().expect("conditions").iter();
                let conditions: Vec<Value> = conditions
                    .map(|one| json!([one["type"], one["status"], one["reason"], one["lastTransitionTime"]]))
                    .collect();
                all.push(json!([object, conditions]));
            }
        }
        all
    }

    /// The Secrets of the namespace, with their values, by name.
    pub(super) async fn secrets(&self) -> Vec<Value> {
        let mut secrets = self.team.list("secret").await;
        secrets.sort_by_key(|secret| secret["metadata"]["name"].to_string());
        secrets
    }

    /// Asserts that objects that stayed have the same Secrets as before, that all Secrets work, and that
    /// there are no others.
    pub(super) async fn assert_secrets_after(&self, before: &[Value]) {
        let after = self.wait_for_secrets_of(&["stays", "changes", "comes"]).await;
        for secret in before {
            let is_same = |other: &&Value| other["metadata"]["name"] == secret["metadata"]["name"];
            if let Some(now) = after.iter().find(is_same) {
                assert_eq!(now["data"], secret["data"], "a Secret was written again");
            } else {
                assert!(!self.works(secret).await, "{}", secret["metadata"]["name"]);
            }
        }
        for secret in &after {
            assert!(self.works(secret).await, "{}", secret["metadata"]["name"]);
        }
    }

    /// Waits until the Secrets are those of the objects of these labels: the controller manager deletes
    /// others.
    async fn wait_for_secrets_of(&self, labels: &[&str]) -> Vec<Value> {
        let suffixes = KINDS.iter().filter_map(|kind| kind.secret);
        let mut expected: Vec<String> = suffixes
            .flat_map(|suffix| labels.iter().map(move |label| format!("{}-{suffix}", self.name(label))))
            .collect();
        expected.sort();
        eventually("the Secrets are those of the objects", async || {
            let secrets = self.secrets().await;
            let names = secrets.iter().filter_map(|secret| secret["metadata"]["name"].as_str());
            names.eq(expected.iter().map(String::as_str)).then_some(secrets)
        })
        .await
    }

    /// Whether the value of a Secret is accepted; of a webhook's, whether the webhook is active.
    async fn works(&self, secret: &Value) -> bool {
        let value = |key: &str| secret_value(secret, key);
        if let Some(token) = value("token") {
            return self.installation.get_as_pro(&token, "/pro/api/domains").await.status == 200;
        }
        if let (Some(address), Some(password)) = (value("address"), value("password")) {
            return self.installation.sign_in(&address, &password).await.status == 200;
        }
        let uid = secret["metadata"]["ownerReferences"][0]["uid"].as_str().expect("an owner");
        let has_webhook = "SELECT EXISTS (SELECT FROM resource r JOIN webhook w ON w.id = r.row_id
                                           WHERE r.uid = $1 AND w.active)";
        self.holds(has_webhook, uid.parse().expect("a UUID")).await
    }

    async fn uid(&self, kind: &ObjectKind, label: &str) -> Uuid {
        let shown = self.team.get(&self.object(kind, label)).await;
        shown["metadata"]["uid"].as_str().expect("a uid").parse().expect("a UUID")
    }

    /// The id of the row of the object of this label, of each kind.
    pub(super) async fn rows_of(&self, label: &str) -> Vec<Uuid> {
        let mut rows = Vec::new();
        for kind in &KINDS {
            let row = sqlx::query_scalar("SELECT row_id FROM resource WHERE uid = $1")
                .bind(self.uid(kind, label).await)
                .fetch_one(&self.installation.app.pool)
                .await;
            rows.push(row.expect("it has a row"));
        }
        rows
    }

    async fn holds(&self, statement: &'static str, parameter: Uuid) -> bool {
        sqlx::query_scalar(statement)
            .bind(parameter)
            .fetch_one(&self.installation.app.pool)
            .await
            .expect("Postgres answers")
    }
}
