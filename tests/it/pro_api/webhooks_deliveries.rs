//! `/pro/api/webhooks/{id}/deliveries`

mod get;
