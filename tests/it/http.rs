//! What holds for every HTTP request, whatever its path.

mod admin_port;
mod bounds;
mod cross_origin;
mod defaults;
mod errors;
mod half_closed;
mod passwords;
mod refused;
mod request_id;
mod slow_readers;
