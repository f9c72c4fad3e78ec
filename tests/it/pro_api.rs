//! `/pro/api`

mod domains;
