//! The answer to creating a mailbox and to signing in.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// The answer to creating a mailbox and to signing in.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SignedIn {
    pub(super) id: Uuid,
    pub(super) address: String,
    pub(super) token: String,
}
