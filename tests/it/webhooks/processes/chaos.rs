//! Faults with their real times, and faults in a random order under load.

mod lease_time;
mod random_faults;
mod silence;
mod unavailable_postgres;
