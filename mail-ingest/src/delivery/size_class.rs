//! Classes of mails by the size of their data. Each is prepared beside the others, so that no mail waits for one that
//! is much larger.

/// Data of fewer bytes is prepared in the session's task.
const MEDIUM_FROM: usize = 128 << 10;
/// Data of more bytes is large.
const MEDIUM_MAX: usize = 2 << 20;

/// The class of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SizeClass {
    /// Parsed and compressed in the session's task, in less than a millisecond.
    Small,
    /// Parsed and compressed outside the async threads, few at once.
    Medium,
    /// As medium ones, which do not wait for it.
    Large,
}

impl SizeClass {
    /// The class of a mail with so many bytes of data.
    pub(super) fn of(bytes: usize) -> Self {
        match bytes {
            0..MEDIUM_FROM => Self::Small,
            MEDIUM_FROM..=MEDIUM_MAX => Self::Medium,
            _ => Self::Large,
        }
    }
}
