//! The six kinds: what each observes, plans and does.

mod api_token;
mod custom_domain;
mod mailbox;
mod system_domain;
mod tenant;
mod webhook;
