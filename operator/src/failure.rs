//! Why a reconciliation did not come to its end. Nothing of it is shown in conditions: whatever the
//! object says is still to be done, and will be.

use tempmail_store::StoreError;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Postgres.
    #[error(transparent)]
    Store(StoreError),
    /// The API server. Its answer may quote what was sent, so it is told by its code.
    #[error("the API server: {}", without_data(.0))]
    Kubernetes(kube::Error),
    /// The object changed since it was looked at: what was about to be written is out of date.
    #[error("the object changed meanwhile")]
    Stale,
    /// What Kubernetes says about the object's tenant can't be read, so nobody knows whom it allows:
    /// all stays as it is.
    #[error("the Tenant can't be read")]
    Unread,
    /// Another operator leads.
    #[error("another operator leads")]
    Fenced,
    /// The operating system gives no randomness.
    #[error("the operating system gives no randomness")]
    Randomness,
    /// The secret of a webhook was sealed by a key that `secrets.keys` lacks.
    #[error("a secret does not open with `secrets.keys`")]
    Sealed,
    /// Looking and acting did not come to an end: a fault of ours.
    #[error("nothing settles")]
    Unsettled,
}

impl Failure {
    /// One word, for metrics.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Store(error) if error.is_unavailable() => "PostgresUnavailable",
            Self::Store(_) => "Postgres",
            Self::Kubernetes(_) => "Kubernetes",
            Self::Stale => "Stale",
            Self::Unread => "Unread",
            Self::Fenced => "Fenced",
            Self::Randomness => "Randomness",
            Self::Sealed => "Sealed",
            Self::Unsettled => "Unsettled",
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Fenced => Self::Fenced,
            error => Self::Store(error),
        }
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.is_conflict() || status.is_already_exists() => Self::Stale,
            error => Self::Kubernetes(error),
        }
    }
}

fn without_data(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} {}", status.code, status.reason),
        error => error.to_string(),
    }
}
