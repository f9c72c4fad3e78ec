//! `/api`

mod accounts;
mod domains;
mod errors;
mod me;
mod messages;
mod rates;
mod sign_in;
