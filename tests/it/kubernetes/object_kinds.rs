//! The kinds of objects, for tests that do the same with each of them.

use serde_json::{Value, json};
use tempmail_tests::kubernetes::{Team, condition};
use tempmail_tests::rows::SYSTEM_DOMAIN as SHARED_DOMAIN;

/// A kind, and what is done with its objects.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectKind {
    pub(super) name: &'static str,
    /// Whether its objects are in a namespace, and refer to a tenant.
    pub(super) is_namespaced: bool,
    /// The spec of the object of a label, beside its tenant.
    pub(super) spec: fn(&Team, &str) -> String,
    /// The final reason of its condition Ready.
    pub(super) final_reason: &'static str,
    /// A change of the spec, which is merged into it.
    pub(super) change: fn() -> Value,
    /// A statement: whether the change reached the row of the object of a uid.
    pub(super) is_changed: &'static str,
    /// The suffix of the name of its Secret.
    pub(super) secret: Option<&'static str>,
}

impl ObjectKind {
    /// The object of a name, as [`Team`] names it.
    pub(super) fn object(&self, name: &str) -> String {
        format!("{}/{name}", self.name.to_lowercase())
    }

    /// Declares the object of a name and a label; does not wait.
    pub(super) async fn declare(&self, team: &Team, name: &str, label: &str) {
        let spec = (self.spec)(team, label);
        if self.is_namespaced {
            team.apply(self.name, name, &spec).await;
        } else {
            team.apply_object(self.name, name, &spec).await;
        }
    }

    /// Waits until the object of a name has its final conditions.
    pub(super) async fn wait_until_settled(&self, team: &Team, name: &str) {
        team.wait_until(&self.object(name), self.final_reason, |shown| {
            let is_observed = shown["status"]["observedGeneration"] == shown["metadata"]["generation"];
            let ready = condition(shown, "Ready");
            is_observed && ready.is_some_and(|ready| ready["reason"] == self.final_reason)
        })
        .await;
    }
}

pub(super) const TENANT: ObjectKind = ObjectKind {
    name: "Tenant",
    is_namespaced: false,
    spec: |_team, _label| "deletionPolicy: Delete".to_owned(),
    final_reason: "Ready",
    change: || json!({"limits": {"customDomains": 7}}),
    is_changed: "SELECT EXISTS (SELECT FROM resource r JOIN tenant t ON t.id = r.row_id
                                 WHERE r.uid = $1 AND t.domain_limit = 7)",
    secret: None,
};
pub(super) const SYSTEM_DOMAIN: ObjectKind = ObjectKind {
    name: "SystemDomain",
    is_namespaced: false,
    spec: |team, label| format!("domain: {label}.system.{}.example", team.tenant),
    final_reason: "Ready",
    change: || json!({"sortOrder": 7}),
    is_changed: "SELECT EXISTS (SELECT FROM resource r JOIN domain d ON d.id = r.row_id
                                 WHERE r.uid = $1 AND d.sort_order = 7)",
    secret: None,
};
pub(super) const CUSTOM_DOMAIN: ObjectKind = ObjectKind {
    name: "CustomDomain",
    is_namespaced: true,
    spec: |team, label| format!("domain: {}", team.domain(label)),
    final_reason: "DnsLookupFailed",
    change: || json!({"deletionPolicy": "Retain"}),
    is_changed: "SELECT EXISTS (SELECT FROM resource WHERE uid = $1 AND retained)",
    secret: None,
};
pub(super) const WEBHOOK: ObjectKind = ObjectKind {
    name: "Webhook",
    is_namespaced: true,
    spec: |_team, label| format!("url: 'https://hooks.example.com/{label}'"),
    final_reason: "Ready",
    change: || json!({"url": "https://hooks.example.com/changed"}),
    is_changed: "SELECT EXISTS (SELECT FROM resource r JOIN webhook w ON w.id = r.row_id
                                 WHERE r.uid = $1 AND w.url = 'https://hooks.example.com/changed')",
    secret: Some("webhook"),
};
pub(super) const API_TOKEN: ObjectKind = ObjectKind {
    name: "ApiToken",
    is_namespaced: true,
    spec: |_team, _label| "type: Pro".to_owned(),
    final_reason: "Ready",
    change: || json!({"expiresAt": "2100-01-01T00:00:00Z"}),
    is_changed: "SELECT EXISTS (SELECT FROM resource r JOIN api_token t ON t.id = r.row_id
                                 WHERE r.uid = $1 AND t.expires_at = '2100-01-01T00:00:00Z')",
    secret: Some("token"),
};
pub(super) const MAILBOX: ObjectKind = ObjectKind {
    name: "Mailbox",
    is_namespaced: true,
    spec: |team, label| format!("address: {label}.{}@{SHARED_DOMAIN}", team.tenant),
    final_reason: "Ready",
    change: || json!({"deletionPolicy": "Retain"}),
    is_changed: "SELECT EXISTS (SELECT FROM resource WHERE uid = $1 AND retained)",
    secret: Some("mailbox"),
};

/// All kinds.
pub(super) const KINDS: [ObjectKind; 6] = [TENANT, SYSTEM_DOMAIN, CUSTOM_DOMAIN, WEBHOOK, API_TOKEN, MAILBOX];

/// Tests of every kind must not leave one out.
#[test]
fn lists_every_kind_that_has_a_definition() {
    let mut listed = KINDS.map(|kind| kind.name.to_owned()).to_vec();
    let mut defined: Vec<String> =
        tempmail_crds::all().into_iter().map(|definition| definition.spec.names.kind).collect();
    listed.sort();
    defined.sort();
    assert_eq!(listed, defined);
}
