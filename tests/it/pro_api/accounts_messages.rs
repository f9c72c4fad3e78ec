//! `/pro/api/accounts/{id}/messages`

mod get;
