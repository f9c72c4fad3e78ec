use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::shared_field::{
    AdoptionPolicy, Condition, DeletionPolicy, KindStatus, SecretTarget, TenantRef, conditions,
};

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
    doc = "A mailbox of a tenant at a fixed address, with its password in a Secret. Create mailboxes that live for minutes over HTTP.",
    selectable = ".spec.tenantRef.name",
    selectable = ".spec.address",
    printcolumn(name = "Address", type_ = "string", json_path = ".spec.address"),
    printcolumn(name = "Secret", type_ = "string", json_path = ".status.secretName"),
    printcolumn(name = "Tenant", type_ = "string", json_path = ".spec.tenantRef.name", priority = "1"),
    validation = Rule::new("self.metadata.name.size() <= 240").message("the object's name has at most 240 characters"),
    validation = Rule::new("(has(self.spec.secret) ? self.spec.secret.name : self.metadata.name + '-mailbox') == (has(oldSelf.spec.secret) ? oldSelf.spec.secret.name : self.metadata.name + '-mailbox')")
        .message("the Secret's name can't be changed: delete the object and create it again")
)]
#[serde(rename_all = "camelCase")]
pub struct MailboxSpec {
    /// The tenant that owns the mailbox.
    pub tenant_ref: TenantRef,
    /// The address in lower case, under a system domain or a verified CustomDomain of the tenant.
    #[schemars(length(min = 3, max = 254))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("address can't be changed: create another Mailbox"))]
    #[x_kube(validation = Rule::new(r"self.matches('^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])+[a-z]([a-z0-9-]{0,61}[a-z0-9])$')")
        .message("address is a local part of letters, digits, '.', '_' and '-', and a domain, in lower case, such as signup@mail.example.com"))]
    #[x_kube(validation = Rule::new("!self.contains('..')").message("address has no two dots in a row"))]
    pub address: String,
    /// The Secret that the operator writes `address` and `password` to. Defaults to the Secret
    /// `<name>-mailbox`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretTarget>,
    /// Whether to adopt a mailbox that the tenant created over HTTP, unless another object manages it.
    /// Adopting one changes its password. Defaults to Never.
    #[serde(default = "AdoptionPolicy::never")]
    pub adoption_policy: AdoptionPolicy,
    /// Whether deleting this object deletes the mailbox with its mail (Delete), or leaves it to the tenant
    /// (Retain). Defaults to Delete.
    #[serde(default = "DeletionPolicy::delete")]
    pub deletion_policy: DeletionPolicy,
}

/// Observed state of a Mailbox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MailboxStatus {
    /// The `metadata.generation` that the operator observed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// ID of the mailbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mailbox_id: Option<String>,
    /// Name of the Secret that holds the address and the password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// Value of `tempmail.dev/rotate-requested-at` that was handled last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_rotate_at: Option<String>,
    /// Ready and Accepted; also Reconciling, Stalled and ReconciliationPaused, only while they are True.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

impl KindStatus for MailboxStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }

    fn set_observed_generation(&mut self, generation: Option<i64>) {
        self.observed_generation = generation;
    }
}
