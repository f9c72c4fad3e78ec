//! Messages about mailboxes, tokens, webhooks and their Secrets.

use jiff::Timestamp;
use tempmail_model::webhook::WebhookUrlError;

use super::Message;
use crate::status::Reason;

/// The same words whoever has the address.
pub(crate) fn address_taken() -> Message {
    Message::new(
        Reason::AddressTaken,
        "The address in spec.address is in use, or held after a deletion. Create an object with another \
         address.",
    )
}

pub(crate) fn address_invalid() -> Message {
    Message::new(
        Reason::InvalidSpec,
        "spec.address is not a valid address: its local part contains '..'. Create an object with another \
         address.",
    )
}

pub(crate) fn local_part_reserved(domain: &str) -> Message {
    Message::new(
        Reason::InvalidSpec,
        format!(
            "The local part of spec.address is reserved on system domains, such as {domain}. Create an \
             object with another address."
        ),
    )
}

pub(crate) fn secret_conflict(secret: &str) -> Message {
    Message::new(
        Reason::SecretConflict,
        format!(
            "The Secret {secret} exists, and this object did not create it. Delete the Secret, or create \
             this object again with another spec.secret.name."
        ),
    )
}

pub(crate) fn secret_immutable(secret: &str) -> Message {
    Message::new(
        Reason::SecretImmutable,
        format!(
            "The Secret {secret} is immutable and can't be updated. Delete it; it is created again within a \
             minute."
        ),
    )
}

/// `why` is the API server's word for it, without values.
pub(crate) fn secret_refused(secret: &str, why: &str) -> Message {
    Message::new(
        Reason::SecretRefused,
        format!(
            "The API server rejects the Secret {secret} ({why}). Change the quota, policy or webhook that \
             rejects it. The write is retried every minute."
        ),
    )
}

/// `why` is the API server's word for it.
pub(crate) fn secret_unreadable(secret: &str, why: &str) -> Message {
    Message::new(
        Reason::SecretUnreadable,
        format!(
            "The API server does not let the operator read the Secret {secret} ({why}), so it is not known \
             whether the Secret holds the credential. Permit the operator's service account to get Secrets in \
             this namespace. The read is retried every minute."
        ),
    )
}

pub(crate) fn secret_lost(secret: &str) -> Message {
    Message::new(
        Reason::SecretLost,
        format!(
            "The Secret {secret} is missing or no longer holds the token, and spec.onSecretLoss is Stall. \
             The token stays valid. Set the annotation tempmail.dev/rotate-requested-at to a new value to \
             get a new token."
        ),
    )
}

pub(crate) fn secret_written(secret: &str) -> Message {
    Message::new(Reason::SecretWritten, format!("The Secret {secret} was written."))
}

pub(crate) fn secret_rotated(secret: &str) -> Message {
    Message::new(
        Reason::SecretRotated,
        format!("The Secret {secret} has a new value. The previous value is refused."),
    )
}

pub(crate) fn token_expired(at: Timestamp) -> Message {
    Message::new(
        Reason::Expired,
        format!("The token expired at {at}. Change spec.expiresAt, or delete the object."),
    )
}

pub(crate) fn url_invalid(error: WebhookUrlError) -> Message {
    Message::new(Reason::InvalidSpec, format!("spec.url is invalid: {error} Change spec.url."))
}

/// `url` is the webhook's; only its host is shown, since the rest may be a secret.
pub(crate) fn delivering(url: &str) -> Message {
    let host = host(url);
    Message::new(Reason::Delivering, format!("Events are sent to {host}."))
}

/// `url` is the webhook's; only its host is shown.
pub(crate) fn auto_disabled(url: &str) -> Message {
    let host = host(url);
    Message::new(
        Reason::AutoDisabled,
        format!(
            "Ten delivery attempts in a row to {host} failed, so no events are sent. Fix the receiver, then \
             set the annotation tempmail.dev/reenable-requested-at to a new value. The webhook gets a new id \
             and secret."
        ),
    )
}

/// `url` is the webhook's; only its host is shown.
pub(crate) fn webhook_reenabled(url: &str) -> Message {
    let host = host(url);
    Message::new(
        Reason::WebhookReenabled,
        format!("The disabled webhook to {host} was replaced by one with a new id and secret."),
    )
}

/// The host of a valid URL, with its port if it has one.
fn host(url: &str) -> &str {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_only_the_host_of_a_url() {
        for url in ["https://hooks.example.com:1/s3cret?key=s3cret", "HTTPS://hooks.example.com:1?s3cret"] {
            assert_eq!(delivering(url).text, "Events are sent to hooks.example.com:1.");
        }
    }
}
