//! Secrets that the API server does not let the operator write, or read.

use kube::core::Status;

use crate::status::message::{secret_immutable, secret_refused, secret_unreadable};
use crate::status::{Message, Progress, StatusUpdate};

/// Status codes of responses that reject a Secret for its content, and would again.
const REJECTIONS: [u16; 4] = [400, 403, 413, 422];
/// Prefixes of messages that the API server words itself: about quotas, permissions, and namespaces that are
/// being deleted.
const API_SERVER_MESSAGES: [&str; 5] = [
    "exceeded quota: ",
    "failed quota: ",
    "status unknown for quota: ",
    "User \"",
    "unable to create new content",
];
/// Prefixes of messages that admission plugins word.
const ADMISSION_MESSAGES: [&str; 2] = ["admission webhook \"", "ValidatingAdmissionPolicy '"];

/// Why a Secret can't be written, or read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SecretError {
    /// The Secret is immutable.
    Immutable,
    /// The API server rejects it, with this message.
    Rejected(String),
    /// The API server does not let the operator read it, with this message.
    Unreadable(String),
}

impl SecretError {
    /// The error in the response to a write of the Secret `name`, if the response rejects its content.
    pub(super) fn from_response(status: &Status, name: &str) -> Option<Self> {
        REJECTIONS.contains(&status.code).then(|| Self::Rejected(message(status, name)))
    }

    /// The error in the response to a read of the Secret `name` that is not permitted.
    pub(super) fn unreadable(status: &Status, name: &str) -> Self {
        Self::Unreadable(message(status, name))
    }

    /// The status of an object whose Secret of this name can't be used. It is retried soon, since what
    /// prevents it may change without a notification.
    pub(crate) fn status_update<S>(&self, status: S, secret: &str) -> StatusUpdate<S> {
        StatusUpdate::not_ready(status, self.message(secret), Progress::Stalled).retry_soon()
    }

    /// The message about the Secret of this name.
    pub(crate) fn message(&self, secret: &str) -> Message {
        match self {
            Self::Immutable => secret_immutable(secret),
            Self::Rejected(why) => secret_refused(secret, why),
            Self::Unreadable(why) => secret_unreadable(secret, why),
        }
    }
}

/// The message of a rejection as far as the API server words it itself. Admission webhooks and policies may
/// quote the values, which readers of a status must not see.
fn message(status: &Status, name: &str) -> String {
    let message = &status.message;
    let about_secret = message.strip_prefix(&format!("secrets \"{name}\" is forbidden: "));
    let inner = about_secret.or_else(|| message.strip_prefix("secrets is forbidden: "));
    if let Some(inner) =
        inner.filter(|inner| API_SERVER_MESSAGES.iter().any(|prefix| inner.starts_with(prefix)))
    {
        return inner.to_owned();
    }
    let plugin = [inner.unwrap_or_default(), message].into_iter().find_map(|message| {
        let (plugin, _) = message.split_once(" denied ")?;
        ADMISSION_MESSAGES.iter().any(|prefix| plugin.starts_with(prefix)).then_some(plugin)
    });
    plugin
        .map_or_else(|| format!("{} {}", status.code, status.reason), |plugin| format!("{plugin} denies it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(code: u16, message: &str) -> Option<SecretError> {
        let status =
            Status { code, reason: "Forbidden".to_owned(), message: message.to_owned(), ..Status::default() };
        SecretError::from_response(&status, "ci-token")
    }

    fn why(message: &str) -> Option<SecretError> {
        Some(SecretError::Rejected(message.to_owned()))
    }

    #[test]
    fn shows_what_the_api_server_says_itself() {
        let message = "secrets \"ci-token\" is forbidden: exceeded quota: few, requested: secrets=1";
        assert_eq!(rejected(403, message), why("exceeded quota: few, requested: secrets=1"));
    }

    #[test]
    fn hides_what_admission_plugins_say() {
        let message = "admission webhook \"w.example\" denied the request: it has c2VjcmV0";
        assert_eq!(rejected(403, message), why("admission webhook \"w.example\" denies it"));
        assert_eq!(rejected(403, "it has c2VjcmV0"), why("403 Forbidden"));
    }

    #[test]
    fn takes_other_codes_for_failures() {
        for code in [401, 409, 429, 500, 503] {
            assert_eq!(rejected(code, ""), None, "{code}");
        }
    }
}
