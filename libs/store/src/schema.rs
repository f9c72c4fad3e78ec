//! The schema: tables by migrations, functions, views and triggers by the files of `libs/store/sql`, and who may do
//! what with them.

pub(crate) mod definition;
mod grant;
pub(crate) mod group_role;
pub(crate) mod migration;
mod object;
mod rights;
