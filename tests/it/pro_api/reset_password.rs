//! `/pro/api/accounts/{id}/reset-password`

mod put;
