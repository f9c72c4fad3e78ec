//! Messages about domains and DNS records.

use jiff::Timestamp;
use tempmail_model::verify_token::txt_host;
use tempmail_store::RowHolder;

use super::{Message, name_of};
use crate::status::Reason;

/// Maximum characters of a value that a name server returned; the status has all of it.
const FOUND_MAX: usize = 100;

/// `holder` is an object of the same tenant, or a SystemDomain; `None` if it is not known.
pub(crate) fn domain_claimed(domain: &str, holder: Option<&RowHolder>) -> Message {
    let object = match holder {
        Some(holder) => format!("The object {}", name_of(holder)),
        None => "Another object".to_owned(),
    };
    Message::new(
        Reason::DomainClaimed,
        format!("{object} manages the domain {domain} already. Delete one of the two objects."),
    )
}

/// `resource` names what the tenant has.
pub(crate) fn exists_unmanaged(tenant: &str, resource: &str) -> Message {
    Message::new(
        Reason::ExistsUnmanaged,
        format!(
            "Tenant {tenant} created {resource} over HTTP, and spec.adoptionPolicy is Never. Set it to \
             IfUnowned to adopt {resource}, or delete {resource} over HTTP."
        ),
    )
}

pub(crate) fn domain_reserved(domain: &str) -> Message {
    Message::new(
        Reason::ReservedDomain,
        format!(
            "The domain {domain} is a public suffix, or is equal to, above or below a domain of the \
             installation. Create an object with another domain."
        ),
    )
}

/// A SystemDomain would meet a custom domain, which is not named.
pub(crate) fn domain_of_a_tenant(domain: &str) -> Message {
    Message::new(
        Reason::ReservedDomain,
        format!(
            "The domain {domain} is equal to, above or below a custom domain of a tenant. Create an object \
             with another domain."
        ),
    )
}

pub(crate) fn domain_invalid(domain: &str) -> Message {
    Message::new(
        Reason::InvalidSpec,
        format!("The domain {domain} is not a host name. Create an object with another domain."),
    )
}

/// `older` is the name of the SystemDomain that is the default one.
pub(crate) fn default_taken(older: &str) -> Message {
    Message::new(
        Reason::DefaultTaken,
        format!(
            "The SystemDomain {older} is older and claims to be the default domain, too. Set spec.default to \
             false on one of the two."
        ),
    )
}

pub(crate) fn domain_in_use(domain: &str, mailboxes: i64) -> Message {
    let users =
        if mailboxes == 1 { "1 mailbox uses".to_owned() } else { format!("{mailboxes} mailboxes use") };
    Message::new(
        Reason::InUse,
        format!("{users} the domain {domain}. The domain is deleted when no mailbox uses it."),
    )
}

pub(crate) fn domain_is_default(domain: &str) -> Message {
    Message::new(
        Reason::IsDefault,
        format!(
            "The domain {domain} is the default domain. Set spec.default to true on another SystemDomain; \
             then this one is deleted."
        ),
    )
}

pub(crate) fn domain_is_only(domain: &str) -> Message {
    Message::new(
        Reason::IsOnly,
        format!(
            "The domain {domain} is the only system domain. Create another one; then this one is deleted."
        ),
    )
}

/// The domain of an address does not serve the tenant.
pub(crate) fn domain_not_served(domain: &str, tenant: &str) -> Message {
    Message::new(
        Reason::DomainNotServed,
        format!(
            "The domain {domain} is neither a system domain nor a verified custom domain of tenant {tenant}. \
             Verify the domain with a CustomDomain; this resource becomes ready then."
        ),
    )
}

pub(crate) fn records_found(domain: &str) -> Message {
    let txt = txt_host(domain);
    Message::new(
        Reason::RecordsFound,
        format!("The TXT record at {txt} and the MX record at {domain} are correct."),
    )
}

/// `txt` and `mx` are the expected values.
pub(crate) fn waiting_for_dns(domain: &str, txt: &str, mx: &str) -> Message {
    let name = txt_host(domain);
    Message::new(
        Reason::WaitingForDns,
        format!(
            "Create the TXT record at {name} with the value \"{txt}\" and the MX record at {domain} with the \
             value \"10 {mx}\". They are checked every 5 minutes."
        ),
    )
}

/// `value` is the expected one.
pub(crate) fn txt_record_missing(domain: &str, value: &str) -> Message {
    let name = txt_host(domain);
    Message::new(Reason::TxtRecordMissing, missing("TXT", &name, value))
}

/// `found` has the values that the name servers returned.
pub(crate) fn txt_record_mismatch(domain: &str, value: &str, found: &[String]) -> Message {
    let name = txt_host(domain);
    Message::new(Reason::TxtRecordMismatch, mismatch("TXT", &name, value, found))
}

/// `host` is the expected mail exchanger.
pub(crate) fn mx_record_missing(domain: &str, host: &str) -> Message {
    Message::new(Reason::MxRecordMissing, missing("MX", domain, &format!("10 {host}")))
}

/// `found` has the values that the name servers returned.
pub(crate) fn mx_record_mismatch(domain: &str, host: &str, found: &[String]) -> Message {
    Message::new(Reason::MxRecordMismatch, mismatch("MX", domain, &format!("10 {host}"), found))
}

fn missing(kind: &str, name: &str, value: &str) -> String {
    format!(
        "The {kind} record at {name} does not exist. Create it with the value \"{value}\". It is checked \
         every 5 minutes."
    )
}

fn mismatch(kind: &str, name: &str, value: &str, found: &[String]) -> String {
    let found = found.first().map_or_else(
        || "has another value".to_owned(),
        |value| format!("has the value \"{}\"", value.chars().take(FOUND_MAX).collect::<String>()),
    );
    format!(
        "The {kind} record at {name} {found}; expected \"{value}\". Correct it. It is checked every 5 minutes."
    )
}

pub(crate) fn dns_lookup_failed(domain: &str) -> Message {
    Message::new(
        Reason::DnsLookupFailed,
        format!(
            "None of the name servers of {domain} answers. Check the delegation of the domain. The lookup is \
             retried every 5 minutes."
        ),
    )
}

pub(crate) fn verification_timed_out(domain: &str, deadline: Timestamp) -> Message {
    Message::new(
        Reason::VerificationTimedOut,
        format!(
            "The DNS records of {domain} were not correct before the deadline, {deadline}. Correct them as \
             status.verification.records says, then set the annotation tempmail.dev/verify-requested-at to a \
             new value."
        ),
    )
}

pub(crate) fn records_lost(domain: &str) -> Message {
    Message::new(
        Reason::RecordsLost,
        format!(
            "The DNS records of {domain} were incorrect for days, so its mail is refused. Correct them as \
             status.verification.records says, then set the annotation tempmail.dev/verify-requested-at to a \
             new value."
        ),
    )
}

/// The other tenant is not named.
pub(crate) fn claimed_by_another(domain: &str) -> Message {
    Message::new(
        Reason::ClaimedByAnother,
        format!(
            "Another tenant verified that it owns the domain {domain}. Use another domain; or, if that is \
             not right, correct the DNS records and set the annotation tempmail.dev/verify-requested-at to a \
             new value."
        ),
    )
}
