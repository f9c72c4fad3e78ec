//! `/pro/api/accounts`

mod delete;
mod get;
mod messages {
    mod get;
}
mod reset_password {
    mod put;
}
