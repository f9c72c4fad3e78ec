//! A message as `/v1` lists and pushes it.

use serde::Serialize;
use tempmail_store::MessageRow;
use utoipa::ToSchema;
use uuid::Uuid;

use tempmail_model::timestamp::timestamp;

/// What long-polls list and streams push of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmailSummary {
    id: Uuid,
    address: String,
    from_email: String,
    subject: String,
    preview_text: String,
    #[schema(minimum = 0)]
    size: i32,
    created_at: String,
}

impl From<&MessageRow> for EmailSummary {
    fn from(row: &MessageRow) -> Self {
        Self {
            id: row.id,
            created_at: timestamp(row.created_at()),
            address: row.address.clone(),
            from_email: row.from_email.clone(),
            subject: row.subject.clone(),
            preview_text: row.preview.clone(),
            size: row.size,
        }
    }
}
