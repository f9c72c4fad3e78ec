//! How a start reports the steps that take long.

/// Called with one line for a step that takes long, such as a download.
pub type Progress = fn(&str);
