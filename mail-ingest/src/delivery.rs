//! Delivery: a received mail is prepared in its session's task, and the batcher commits it before
//! the client gets `250`.

mod batch_queues;
mod batcher;
mod in_flight;
mod large_mail;
mod partition;
mod pipeline;
mod prepare;
mod shared_inbox_capacity;
mod size_class;
mod small_mail;
mod summary;
mod unanswered;

pub(crate) use in_flight::InFlightGuard;
pub(crate) use pipeline::Delivery;
