//! Temporary.
#![expect(missing_docs, reason = "replaced by the resolver")]
#[derive(Clone, Copy)]
pub struct Question<'a> {
    pub domain: &'a str,
    pub token: &'a str,
    pub holder_token: Option<&'a str>,
    pub mx_host: &'a str,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    Right,
    Missing,
    Mismatch,
    Unknown,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Findings {
    pub txt: Finding,
    pub mx: Finding,
    pub holder_txt: Finding,
}
impl Findings {
    pub const UNKNOWN: Self =
        Self { txt: Finding::Unknown, mx: Finding::Unknown, holder_txt: Finding::Unknown };
}
