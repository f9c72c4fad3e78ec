//! The schema: tables by migrations, functions, views and triggers by the files of `libs/store/sql`, and who may do
//! what with them.

pub(crate) mod definition;
pub(crate) mod error;
mod grant;
pub(crate) mod group_role;
pub(crate) mod migration;
mod object;
pub(crate) mod report;
mod rights;
mod rights_check;
