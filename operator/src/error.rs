//! Why a reconciliation failed. Failures are retried with backoff and never shown in conditions.

use tempmail_store::StoreError;

/// A failed reconciliation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// Postgres failed.
    #[error(transparent)]
    Store(StoreError),
    /// The API server failed. Its message may quote the request, so only its code is shown.
    #[error("the API server: {}", without_data(.0))]
    Kubernetes(kube::Error),
    /// The object or its Secret changed after it was read, so the write was not made.
    #[error("the object changed concurrently")]
    Stale,
    /// Tenants or namespaces were not listed yet, or the object's Tenant can't be decoded, so whether it
    /// allows the namespace is unknown and everything stays as it is.
    #[error("Tenants and namespaces are not synced")]
    CacheNotSynced,
    /// Another operator is the leader.
    #[error("another operator leads")]
    Fenced,
    /// The operating system provides no randomness.
    #[error("the operating system provides no randomness")]
    Randomness,
    /// A webhook's secret was sealed with a key that `secrets.keys` lacks.
    #[error("a secret can't be opened with `secrets.keys`")]
    Sealed,
    /// Password hashing was aborted, which happens only when the process ends.
    #[error("password hashing was aborted")]
    HashingAborted,
    /// The plan did not end within the limit of steps, which is a bug.
    #[error("the reconciliation took too many steps")]
    StepLimitReached,
}

impl ReconcileError {
    /// Label of the error in metrics.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Store(error) if error.is_unavailable() => "PostgresUnavailable",
            Self::Store(_) => "Postgres",
            Self::Kubernetes(_) => "Kubernetes",
            Self::Stale => "Stale",
            Self::CacheNotSynced => "CacheNotSynced",
            Self::Fenced => "Fenced",
            Self::Randomness => "Randomness",
            Self::Sealed => "Sealed",
            Self::HashingAborted => "HashingAborted",
            Self::StepLimitReached => "StepLimitReached",
        }
    }
}

impl From<StoreError> for ReconcileError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Fenced => Self::Fenced,
            error => Self::Store(error),
        }
    }
}

impl From<kube::Error> for ReconcileError {
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
