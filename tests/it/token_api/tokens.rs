//! `/v1/tokens`

mod delete;
mod get;
mod minted;
mod post;
mod surfaces;
