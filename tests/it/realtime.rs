//! Waiting for mail in a cluster: several processes over one Postgres and one Redis.

mod rights;
