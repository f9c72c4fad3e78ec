//! `/pro/api/webhooks/{id}/rotate`

mod post;
