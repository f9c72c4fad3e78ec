//! `/v1/tokens`

mod delete;
mod get;
mod post;
