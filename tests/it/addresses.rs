//! One address in every spelling, on every surface that takes one. A spelling either means the victim's address or it does
//! not, the same everywhere; none reaches the inbox of another owner or a reserved one.

mod custom_domain;
mod fixture;
mod reserved;
mod system_domain;
mod url;
