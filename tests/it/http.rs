//! What holds for every HTTP request, whatever its path.

mod connections;
mod defaults;
mod header_fields;
mod passwords;
mod refused;
mod slow_readers;
