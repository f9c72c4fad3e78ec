//! Postgres or the API server away, or answering with faults: nothing is said that is not so, and all
//! settles when they are back.

mod api_server;
mod postgres;
