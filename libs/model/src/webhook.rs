//! Webhooks: the event, the URL it is sent to, and the secret that signs it.

mod secret;
mod url;

pub use secret::{UnsealError, WebhookSecret, WebhookSecretSealer};
pub use url::{AddressScope, URL_MAX, WebhookUrl, WebhookUrlError};

/// The event that a webhook subscribes to; there is one kind.
pub const EMAIL_RECEIVED: &str = "email.received";
