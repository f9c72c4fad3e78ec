//! Nobody disturbs another: a client of one tenant is served beside attacks of another, and memory stays bounded.

mod attacker;
mod chaos;
