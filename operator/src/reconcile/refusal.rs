//! Why a step was not carried out.

use tempmail_store::DeclareError;

use super::secret_error::SecretError;
use crate::error::ReconcileError;

/// A step that is refused, now and on each retry until something else changes. It becomes a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The row can't be declared.
    Row(DeclareError),
    /// The Secret can't be written.
    Secret(SecretError),
}

/// A step that was not carried out.
#[derive(Debug)]
pub(crate) enum StepError {
    /// It is refused.
    Refused(Refusal),
    /// It failed, and is retried.
    Failed(ReconcileError),
}

impl From<DeclareError> for StepError {
    fn from(error: DeclareError) -> Self {
        Self::Refused(Refusal::Row(error))
    }
}

impl From<SecretError> for StepError {
    fn from(error: SecretError) -> Self {
        Self::Refused(Refusal::Secret(error))
    }
}

impl<E: Into<ReconcileError>> From<E> for StepError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}
