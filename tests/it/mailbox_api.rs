//! `/api`

mod accounts;
mod domains;
mod me;
mod messages;
mod rates;
mod token;
mod ws;
