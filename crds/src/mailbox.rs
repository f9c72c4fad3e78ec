use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, conditions};
use crate::policy::{AdoptionPolicy, DeletionPolicy};
use crate::reference::{SecretTarget, TenantRef};

/// A mailbox of a tenant at a fixed address, with its password in a Secret.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "tempmail.dev",
    version = "v1alpha1",
    kind = "Mailbox",
    plural = "mailboxes",
    shortname = "mbx",
    category = "tempmail",
    namespaced,
    status = "MailboxStatus",
    derive = "PartialEq",
    doc = "A mailbox of a tenant at a fixed address, with its password in a Secret. Mailboxes that live for minutes are made over HTTP.",
    selectable = ".spec.tenantRef.name",
    selectable = ".spec.address",
    printcolumn(name = "Address", type_ = "string", json_path = ".spec.address"),
    printcolumn(name = "Tenant", type_ = "string", json_path = ".spec.tenantRef.name"),
    printcolumn(name = "Secret", type_ = "string", json_path = ".status.secretName"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason",
        priority = "1"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 240").message("the object's name has at most 240 characters")
)]
#[x_kube(validation = Rule::new("has(self.secret) == has(oldSelf.secret)")
    .message("secret can't be added or removed: delete the object and make it again"))]
#[serde(rename_all = "camelCase")]
pub struct MailboxSpec {
    /// The tenant whose mailbox it is.
    #[x_kube(validation = Rule::new("self == oldSelf").message("tenantRef can't be changed: delete the object and make it again"))]
    pub tenant_ref: TenantRef,
    /// Its address, lower case: under a system domain, or a verified CustomDomain of the tenant.
    #[schemars(length(min = 3, max = 254))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("address can't be changed: make another Mailbox"))]
    #[x_kube(validation = Rule::new(r"self.matches('^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])+[a-z]([a-z0-9-]{0,61}[a-z0-9])$')")
        .message("address is a local part of letters, digits, '.', '_' and '-', and a domain, in lower case, such as signup@mail.example.com"))]
    pub address: String,
    /// The Secret with `address` and `password`; without it `<name>-mailbox`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("secret.name can't be changed: delete the object and make it again"))]
    pub secret: Option<SecretTarget>,
    /// Whether a mailbox that the tenant made over HTTP is taken over; its password is changed then.
    #[serde(default = "AdoptionPolicy::never")]
    pub adoption_policy: AdoptionPolicy,
    /// What deleting this object does to the mailbox and its mail.
    #[serde(default = "DeletionPolicy::delete")]
    pub deletion_policy: DeletionPolicy,
}

/// What the operator knows of a Mailbox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MailboxStatus {
    /// Generation of the spec that the status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Id of the mailbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mailbox_id: Option<String>,
    /// The Secret with the address and the password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// Value of `tempmail.dev/rotate-requested-at` that was carried out last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_rotate_at: Option<String>,
    /// Ready, Accepted; while true: Reconciling, Stalled, ReconciliationPaused.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}
