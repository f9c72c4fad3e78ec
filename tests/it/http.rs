//! What holds for every HTTP request, whatever its path.

mod bounds;
mod cross_origin;
mod request_id;
