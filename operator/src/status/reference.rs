//! The table of all reasons that `tempmail reasons` prints: each with its messages, as a reader sees them.

use std::fmt::Write as _;

use jiff::Timestamp;
use tempmail_model::webhook::WebhookUrlError;
use tempmail_store::{LimitUsage, RowHolder};
use uuid::Uuid;

use super::message::{self, Message};
use super::reason::Reason;

const TENANT: &str = "acme";
const DOMAIN: &str = "mail.example.com";
const SYSTEM_DOMAIN: &str = "inbox.example.net";
const TXT_VALUE: &str = "tempmail-verify=5c0eb7e1";
const MX_HOST: &str = "mx.example.net";
const SECRET: &str = "ci-token";
const EXCEEDED_QUOTA: &str = "exceeded quota: few, requested: secrets=1, used: secrets=5, limited: secrets=5";
const NOT_PERMITTED: &str = "User \"system:serviceaccount:tempmail:tempmail-operator\" cannot get resource \"secrets\" in API \
                             group \"\" in the namespace \"team-a\"";
const WEBHOOK_URL: &str = "https://hooks.example.com/mail";
const TENANT_ID: Uuid = Uuid::from_u128(0x0199_b2c4_7d1e_7a60_9f5d_3c1b_8e2a_4f70);
const OTHER_TENANT_ID: Uuid = Uuid::from_u128(0x0199_b2c4_9a02_7c11_8d3e_6a4f_0b7c_5d21);
const CLUSTER: Uuid = Uuid::from_u128(0x5f0c_3d0e_8f0b_4c52_9d6e_0a51_d3c9_f6b7);

/// `docs/reasons.md`: a row for each message of each reason, with example values.
pub fn reason_reference() -> String {
    let (mut page, examples) = (INTRODUCTION.to_owned(), examples());
    for reason in Reason::ALL {
        let event = if reason.is_warning() { "Warning" } else { "Normal" };
        for Message { text, .. } in examples.iter().filter(|message| message.reason == *reason) {
            // Writing to a string does not fail.
            let _ = writeln!(page, "| `{}` | {event} | {text} |", reason.as_str());
        }
    }
    page
}

/// Each message that there is, with example values.
fn examples() -> Vec<Message> {
    [of_all_kinds(), of_tenants(), of_domains(), of_credentials()].concat()
}

fn of_all_kinds() -> Vec<Message> {
    vec![
        message::ready(),
        message::accepted(),
        message::object_unreadable(),
        message::adopted("the custom domain mail.example.com"),
        message::adopted_from_cluster("Mailbox", TENANT_ID, CLUSTER),
        message::postgres_unavailable(),
        message::paused(),
    ]
}

fn of_tenants() -> Vec<Message> {
    let usage = |used, limit| LimitUsage { used, limit };
    let exceeded = [("custom domains", usage(12, 10)), ("webhooks", usage(2, 1))];
    vec![
        message::ready_with_former_tenant(TENANT_ID),
        message::accepted_by(TENANT),
        message::tenant_ref_not_permitted(TENANT, "team-a", None),
        message::tenant_ref_not_permitted(TENANT, "team-a", Some(OTHER_TENANT_ID)),
        message::tenant_not_ready(TENANT),
        message::tenant_suspended(TENANT),
        message::suspended(TENANT),
        message::tenant_replaced(TENANT, OTHER_TENANT_ID),
        message::tenant_retained(TENANT, TENANT_ID),
        message::tenant_name_taken(TENANT),
        message::tenant_not_adoptable(Some(OTHER_TENANT_ID)),
        message::adoption_invalid(),
        message::selector_invalid("matchExpressions[0] has the operator NotIn and no values"),
        message::limit_reached(TENANT, "webhooks", usage(1, 1)),
        message::limits_exceeded(TENANT, &exceeded),
    ]
}

fn of_domains() -> Vec<Message> {
    let object = |namespace: &str, name: &str| RowHolder {
        cluster: CLUSTER,
        released: false,
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    };
    vec![
        message::domain_claimed(DOMAIN, Some(&object("team-b", "mail"))),
        message::domain_claimed(DOMAIN, None),
        message::held_by_another_cluster(&object("team-a", "mail")),
        message::held_by_another_cluster(&RowHolder { released: true, ..object("team-a", "mail") }),
        message::exists_unmanaged(TENANT, "the custom domain mail.example.com"),
        message::exists_unmanaged(TENANT, "the mailbox at spec.address"),
        message::domain_reserved("example.net"),
        message::domain_of_a_tenant("example.com"),
        message::domain_invalid("-inbox.example.net"),
        message::default_taken("inbox"),
        message::domain_in_use(SYSTEM_DOMAIN, 3),
        message::domain_is_default(SYSTEM_DOMAIN),
        message::domain_is_only(SYSTEM_DOMAIN),
        message::domain_not_served(DOMAIN, TENANT),
        message::records_found(DOMAIN),
        message::waiting_for_dns(DOMAIN, TXT_VALUE, MX_HOST),
        message::txt_record_missing(DOMAIN, TXT_VALUE),
        message::txt_record_mismatch(DOMAIN, TXT_VALUE, &["tempmail-verify=0d41aa90".to_owned()]),
        message::mx_record_missing(DOMAIN, MX_HOST),
        message::mx_record_mismatch(DOMAIN, MX_HOST, &["10 mail.example.org".to_owned()]),
        message::dns_lookup_failed(DOMAIN),
        message::verification_timed_out(DOMAIN, Timestamp::constant(1_785_585_600, 0)),
        message::records_lost(DOMAIN),
        message::claimed_by_another(DOMAIN),
    ]
}

fn of_credentials() -> Vec<Message> {
    vec![
        message::address_taken(),
        message::address_invalid(),
        message::local_part_reserved(SYSTEM_DOMAIN),
        message::url_invalid(WebhookUrlError::NoHostName),
        message::secret_conflict(SECRET),
        message::secret_immutable(SECRET),
        message::secret_refused(SECRET, EXCEEDED_QUOTA),
        message::secret_unreadable(SECRET, NOT_PERMITTED),
        message::secret_lost(SECRET),
        message::secret_written(SECRET),
        message::secret_rotated(SECRET),
        message::token_expired(Timestamp::constant(1_798_675_200, 0)),
        message::delivering(WEBHOOK_URL),
        message::auto_disabled(WEBHOOK_URL),
        message::webhook_reenabled(WEBHOOK_URL),
    ]
}

const INTRODUCTION: &str = "# Reasons

Generated by `tempmail reasons` from the messages of the operator: do not edit.

The reasons of [conditions](kubernetes.md#conditions) and events, with each message that there is for them. The values are
examples: the Tenant `acme`, objects in the namespaces `team-a` and `team-b`, the domain `mail.example.com`. Reasons are
stable across versions, messages are not. [What to do about each reason](troubleshooting-kubernetes.md).

A reason that is new on an object is published as an event of this type, too. `Adopted`, `TenantRetained`, `SecretWritten`,
`SecretRotated` and `WebhookReenabled` are events only, `Paused` is a condition only. An object that no operator has reconciled has the reason
`Pending`, which its definition sets.

| Reason | Event | Message |
|---|---|---|
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_an_example() {
        let examples = examples();
        let missing: Vec<&Reason> = Reason::ALL
            .iter()
            .filter(|reason| !examples.iter().any(|message| message.reason == **reason))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn every_message_has_an_example() {
        let sources = [
            include_str!("message.rs"),
            include_str!("message/domain.rs"),
            include_str!("message/credential.rs"),
        ];
        let functions = sources.into_iter().flat_map(|source| source.split("\npub(crate) fn ").skip(1));
        let names: Vec<&str> = functions.filter_map(|function| Some(function.split_once('(')?.0)).collect();
        assert!(names.len() > 40, "the functions are found");
        let (own, _) = include_str!("reference.rs").split_once("\n#[cfg(test)]").expect("tests come last");
        let missing: Vec<&&str> =
            names.iter().filter(|name| !own.contains(&format!("message::{name}("))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn every_message_is_of_whole_sentences_that_fit_into_a_row() {
        for Message { reason, text } in examples() {
            let is_begin = |first: char| first.is_ascii_uppercase() || first.is_ascii_digit();
            let is_whole = (text.starts_with(is_begin) || text.starts_with("spec.")) && text.ends_with('.');
            assert!(is_whole, "{reason:?}: {text}");
            assert!(!text.contains(['\n', '|', '{', '}']) && !text.contains("  "), "{reason:?}: {text}");
        }
    }
}
