//! What holds for every HTTP request, whatever its path.

mod bounds;
mod cross_origin;
mod errors;
mod request_id;
