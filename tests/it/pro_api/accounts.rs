//! `/pro/api/accounts`

mod delete;
mod get;
