//! `/pro/api/tokens`

mod delete;
mod get;
mod post;
