//! `tempmail up`: the real program with all roles and its own Postgres.

mod durability;
mod lifecycle;
mod postgres_isolation;
