//! How servers are queried.

/// Over which transport servers are queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP, and TCP where UDP does not bring the whole answer.
    UdpFirst,
    /// TCP, which can't be forged from afar, for the query that decides. The answer over UDP counts if the server
    /// does not answer over TCP.
    TcpOnly,
}
