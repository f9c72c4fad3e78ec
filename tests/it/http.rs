//! What holds for every HTTP request, whatever its path.

mod bounds;
mod cross_origin;
mod defaults;
mod errors;
mod request_id;
