//! Rights end everywhere: whoever listens on any process is told within 5 s that it may not any
//! more, whoever ended it, Redis or not; and mail of a new owner never reaches a former one.

mod collected;
mod ending;
mod flow;
mod handover;
mod hint;
mod listener;
mod matrix;
mod world;
