//! `/pro/api/session`

mod post;
