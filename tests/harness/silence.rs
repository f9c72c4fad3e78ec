//! Silence on a network: connections stay open, and nothing arrives.

/// What a proxy passes on no more. What was sent meanwhile arrives when the silence ends, as TCP has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// What clients send.
    ToServer,
    /// What the server answers.
    ToClient,
    /// Both.
    Both,
}

impl Silence {
    /// Whether nothing reaches the server.
    pub(crate) fn is_to_server(self) -> bool {
        matches!(self, Self::ToServer | Self::Both)
    }

    /// Whether nothing reaches clients.
    pub(crate) fn is_to_client(self) -> bool {
        matches!(self, Self::ToClient | Self::Both)
    }
}
