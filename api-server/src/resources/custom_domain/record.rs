//! Custom domains as answers show them.

use serde::Serialize;
use tempmail_model::timestamp::timestamp;
use tempmail_model::verify_token::{txt_host, txt_value};
use tempmail_store::CustomDomain;
use tempmail_verification::CheckResult;
use utoipa::ToSchema;
use uuid::Uuid;

/// Preference of the proposed MX record; the check accepts any.
const MX_PRIORITY: u16 = 10;

/// A custom domain.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DomainRecord {
    id: Uuid,
    /// As A-labels.
    domain: String,
    /// `pending`, `verified` or `failed`.
    verify_status: &'static str,
    verify_token: String,
    /// The DNS records to create.
    dns_records: Vec<DnsRecord>,
    /// Whether the MX record was correct when the name servers last answered.
    mx_configured: bool,
    created_at: String,
    /// When a pending domain fails.
    deadline: String,
    /// When it last became verified.
    verified_at: Option<String>,
    /// `verification_timed_out`, `records_lost` or `claimed_by_another`; null unless failed.
    failure_reason: Option<&'static str>,
    /// `api` or `kubernetes`.
    managed_by: &'static str,
}

/// A DNS record to create.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DnsRecord {
    /// `TXT` or `MX`.
    #[serde(rename = "type")]
    kind: &'static str,
    host: String,
    value: String,
    /// The preference of an MX record.
    priority: Option<u16>,
    /// Whether the record was correct when the name servers last answered.
    ok: bool,
}

/// A page of custom domains, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DomainList {
    domains: Vec<DomainRecord>,
}

/// A custom domain with the result of a check.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckedDomain {
    #[serde(flatten)]
    record: DomainRecord,
    /// Whether the TXT record is correct; also false where the name servers did not answer.
    txt_record: bool,
    /// Whether the MX record is correct; also false where the name servers did not answer.
    mx_record: bool,
}

impl DomainRecord {
    /// `mx_host` is the value of the MX record.
    pub(crate) fn new(domain: CustomDomain, mx_host: &str) -> Self {
        let txt = DnsRecord {
            kind: "TXT",
            host: txt_host(&domain.name),
            value: txt_value(&domain.token),
            priority: None,
            ok: domain.txt_ok,
        };
        let mx = DnsRecord {
            kind: "MX",
            host: domain.name.clone(),
            value: mx_host.to_owned(),
            priority: Some(MX_PRIORITY),
            ok: domain.mx_ok,
        };
        Self {
            id: domain.id,
            domain: domain.name,
            verify_status: domain.status.as_str(),
            verify_token: domain.token,
            dns_records: vec![txt, mx],
            mx_configured: domain.mx_ok,
            created_at: timestamp(domain.created_at),
            deadline: timestamp(domain.deadline),
            verified_at: domain.verified_at.map(timestamp),
            failure_reason: domain.failure_reason.map(|reason| reason.as_str()),
            managed_by: domain.managed_by.as_str(),
        }
    }
}

impl DomainList {
    pub(crate) fn new(domains: Vec<CustomDomain>, mx_host: &str) -> Self {
        Self { domains: domains.into_iter().map(|domain| DomainRecord::new(domain, mx_host)).collect() }
    }
}

impl CheckedDomain {
    pub(crate) fn new(record: DomainRecord, checked: CheckResult) -> Self {
        Self { record, txt_record: checked.txt_found, mx_record: checked.mx_found }
    }
}
