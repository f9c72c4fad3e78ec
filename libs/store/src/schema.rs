//! The schema: tables by migrations, functions, views and triggers by the files of `libs/store/sql`.

pub(crate) mod definition;
pub(crate) mod error;
pub(crate) mod migration;
mod object;
pub(crate) mod report;
