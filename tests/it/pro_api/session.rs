//! `/pro/api/session`

mod cookie;
mod delete;
mod link;
mod post;
