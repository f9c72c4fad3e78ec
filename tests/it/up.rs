//! `tempmail up`: the real program with all roles and its own Postgres.

mod backup;
mod durability;
mod lifecycle;
mod postgres_isolation;
mod sink;
