//! Delivery: a received mail is prepared in its session's task, and the batcher commits it before
//! the client gets `250`.

mod batch_queues;
mod batcher;
mod large_mail;
mod pipeline;
mod prepare;
mod shared_inbox_capacity;
mod summary;
mod unanswered;

pub(crate) use pipeline::Delivery;
