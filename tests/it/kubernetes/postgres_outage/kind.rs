//! The kinds of objects during an outage.

use serde_json::{Value, json};
use tempmail_tests::kubernetes::Team;
use tempmail_tests::rows::SYSTEM_DOMAIN;

/// A kind, and what is done with its objects.
pub(super) struct OutageKind {
    pub(super) name: &'static str,
    /// Whether its objects are in a namespace, and refer to a tenant.
    pub(super) is_namespaced: bool,
    /// The spec of the object of a label, beside its tenant.
    pub(super) spec: fn(&Team, &str) -> String,
    /// The final reason of its condition Ready.
    pub(super) final_reason: &'static str,
    /// What is merged into the spec during the outage.
    pub(super) change: fn() -> Value,
    /// A statement: whether the change reached the row of the object of a uid.
    pub(super) is_changed: &'static str,
    /// The suffix of the name of its Secret.
    pub(super) secret: Option<&'static str>,
}

impl OutageKind {
    /// The object of a name, as [`Team`] names it.
    pub(super) fn object(&self, name: &str) -> String {
        format!("{}/{name}", self.name.to_lowercase())
    }
}

/// All kinds.
pub(super) const KINDS: &[OutageKind] = &[
    OutageKind {
        name: "Tenant",
        is_namespaced: false,
        spec: |_team, _label| "deletionPolicy: Delete".to_owned(),
        final_reason: "Ready",
        change: || json!({"limits": {"customDomains": 7}}),
        is_changed: "SELECT EXISTS (SELECT FROM resource r JOIN tenant t ON t.id = r.row_id
                                     WHERE r.uid = $1 AND t.domain_limit = 7)",
        secret: None,
    },
    OutageKind {
        name: "SystemDomain",
        is_namespaced: false,
        spec: |team, label| format!("domain: {label}.system.{}.example", team.tenant),
        final_reason: "Ready",
        change: || json!({"sortOrder": 7}),
        is_changed: "SELECT EXISTS (SELECT FROM resource r JOIN domain d ON d.id = r.row_id
                                     WHERE r.uid = $1 AND d.sort_order = 7)",
        secret: None,
    },
    OutageKind {
        name: "CustomDomain",
        is_namespaced: true,
        spec: |team, label| format!("domain: {}", team.domain(label)),
        final_reason: "DnsLookupFailed",
        change: || json!({"deletionPolicy": "Retain"}),
        is_changed: "SELECT EXISTS (SELECT FROM resource WHERE uid = $1 AND retained)",
        secret: None,
    },
    OutageKind {
        name: "Webhook",
        is_namespaced: true,
        spec: |_team, label| format!("url: 'https://hooks.example.com/{label}'"),
        final_reason: "Ready",
        change: || json!({"url": "https://hooks.example.com/changed"}),
        is_changed: "SELECT EXISTS (SELECT FROM resource r JOIN webhook w ON w.id = r.row_id
                                     WHERE r.uid = $1 AND w.url = 'https://hooks.example.com/changed')",
        secret: Some("webhook"),
    },
    OutageKind {
        name: "ApiToken",
        is_namespaced: true,
        spec: |_team, _label| "type: Pro".to_owned(),
        final_reason: "Ready",
        change: || json!({"expiresAt": "2100-01-01T00:00:00Z"}),
        is_changed: "SELECT EXISTS (SELECT FROM resource r JOIN api_token t ON t.id = r.row_id
                                     WHERE r.uid = $1 AND t.expires_at = '2100-01-01T00:00:00Z')",
        secret: Some("token"),
    },
    OutageKind {
        name: "Mailbox",
        is_namespaced: true,
        spec: |team, label| format!("address: {label}.{}@{SYSTEM_DOMAIN}", team.tenant),
        final_reason: "Ready",
        change: || json!({"deletionPolicy": "Retain"}),
        is_changed: "SELECT EXISTS (SELECT FROM resource WHERE uid = $1 AND retained)",
        secret: Some("mailbox"),
    },
];
