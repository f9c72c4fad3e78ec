//! `/pro/api/accounts`

mod delete;
mod get;
mod messages {
    mod get;
}
mod post;
mod reset_password {
    mod put;
}
