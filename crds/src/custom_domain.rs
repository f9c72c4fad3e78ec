use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared_field::{AdoptionPolicy, Condition, DeletionPolicy, KindStatus, TenantRef, conditions};

/// A domain of a tenant, which receives mail once its DNS records are verified.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "tempmail.dev",
    version = "v1alpha1",
    kind = "CustomDomain",
    plural = "customdomains",
    shortname = "cdom",
    category = "tempmail",
    namespaced,
    status = "CustomDomainStatus",
    derive = "PartialEq",
    doc = "A domain of a tenant, which receives mail once its DNS records are verified.",
    selectable = ".spec.tenantRef.name",
    selectable = ".spec.domain",
    printcolumn(name = "Domain", type_ = "string", json_path = ".spec.domain"),
    printcolumn(
        name = "Verified",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Verified')].status"
    ),
    printcolumn(name = "Tenant", type_ = "string", json_path = ".spec.tenantRef.name", priority = "1"),
    printcolumn(
        name = "Deadline",
        type_ = "string",
        json_path = ".status.verification.deadline",
        priority = "1"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct CustomDomainSpec {
    /// The tenant that owns the domain.
    pub tenant_ref: TenantRef,
    /// The domain name, in lower case and as A-labels.
    #[schemars(length(min = 3, max = 243))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("domain can't be changed: create another CustomDomain"))]
    #[x_kube(validation = Rule::new(r"self.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])+[a-z]([a-z0-9-]{0,61}[a-z0-9])$')")
        .message("domain is a host name of at least two labels, in lower case and as A-labels, such as mail.example.com"))]
    pub domain: String,
    /// Whether to adopt a domain that the tenant added over HTTP, unless another object manages it. Defaults
    /// to IfUnowned.
    #[serde(default = "AdoptionPolicy::if_unowned")]
    pub adoption_policy: AdoptionPolicy,
    /// Whether deleting this object deletes the domain with its mailboxes and mail (Delete), or leaves it to
    /// the tenant (Retain). Defaults to Delete.
    #[serde(default = "DeletionPolicy::delete")]
    pub deletion_policy: DeletionPolicy,
}

/// Observed state of a CustomDomain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomDomainStatus {
    /// The `metadata.generation` that the operator observed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// ID of the domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain_id: Option<String>,
    /// Progress of the DNS verification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Value of `tempmail.dev/verify-requested-at` that was handled last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_verify_at: Option<String>,
    /// Ready, Accepted and Verified; also Reconciling, Stalled and ReconciliationPaused, only while they are
    /// True.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

impl KindStatus for CustomDomainStatus {
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

/// Progress of a domain's DNS verification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// State of the verification.
    pub state: VerificationState,
    /// Why the verification failed; absent unless `state` is Failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When a pending verification fails.
    #[schemars(with = "Timestamp")]
    pub deadline: Time,
    /// When the domain last became verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub verified_at: Option<Time>,
    /// The DNS records to create.
    #[schemars(length(max = 4))]
    pub records: Vec<DnsRecord>,
}

/// State of a domain's verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VerificationState {
    /// The records are not complete yet. The domain receives no mail.
    Pending,
    /// The records are correct. The domain receives mail.
    Verified,
    /// The records were not correct in time. The domain receives no mail and is not checked again.
    Failed,
}

/// A DNS record to create, with the result of the last check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct DnsRecord {
    /// Record type.
    #[serde(rename = "type")]
    pub kind: DnsRecordType,
    /// Owner name of the record.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Expected value of the record.
    #[schemars(length(max = 255))]
    pub value: String,
    /// Preference of an MX record. Any value is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Result of the last check.
    pub result: RecordResult,
    /// The values that the name servers returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), inner(length(max = 255)))]
    pub observed: Vec<String>,
}

/// Type of a DNS record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum DnsRecordType {
    /// Proves that the tenant owns the domain.
    Txt,
    /// Routes the domain's mail to this installation.
    Mx,
}

/// Result of checking a DNS record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RecordResult {
    /// Every name server that answered has the expected value.
    Found,
    /// A name server has no such record.
    Missing,
    /// A name server has another value.
    Mismatch,
    /// No name server answered, or the record was not checked yet.
    Unknown,
}
