//! The local parts of system domains that nobody may create.

use std::collections::HashSet;

/// Whether a local part of a system domain is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    /// Not reserved.
    None,
    /// Reserved: mail is rejected.
    Refused,
    /// `postmaster` and `abuse`: mail is stored for the tenant `platform`.
    Platform,
    /// Nothing is reserved, and every domain is served: the process is a sink, whose tenant owns what no mailbox and no
    /// custom domain does.
    Sink,
}

impl Reservation {
    /// Whether nobody may create a mailbox of this name.
    pub fn is_reserved(self) -> bool {
        matches!(self, Self::Refused | Self::Platform)
    }
}

/// The reserved local parts of system domains.
#[derive(Debug, Clone)]
pub struct ReservedLocalParts {
    names: HashSet<String>,
    is_sink: bool,
}

impl ReservedLocalParts {
    /// The names of RFC 2142, those that certificate authorities write to, and usual senders.
    pub const DEFAULT: [&str; 30] = [
        "abuse",
        "admin",
        "administrator",
        "ftp",
        "hostmaster",
        "info",
        "mailer-daemon",
        "mailerdaemon",
        "marketing",
        "news",
        "no-reply",
        "noc",
        "noreply",
        "nobody",
        "operator",
        "postmaster",
        "root",
        "sales",
        "security",
        "ssladmin",
        "ssladministrator",
        "sslwebmaster",
        "support",
        "sysadmin",
        "tempmail",
        "usenet",
        "uucp",
        "webmaster",
        "www",
        "system",
    ];

    /// Reserves the given names; `postmaster` and `abuse` are always reserved.
    pub fn new<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Self {
        let mut set: HashSet<String> =
            names.into_iter().map(|name| name.as_ref().to_ascii_lowercase()).collect();
        set.insert("postmaster".into());
        set.insert("abuse".into());
        Self { names: set, is_sink: false }
    }

    /// The same names for a process that may be a sink: then none is reserved.
    #[must_use]
    pub fn with_sink(mut self, is_sink: bool) -> Self {
        self.is_sink = is_sink;
        self
    }

    /// The reservation of a [base local part](super::RecipientAddress::base_local_part).
    pub fn reservation_of(&self, base_local_part: &str) -> Reservation {
        match base_local_part {
            _ if self.is_sink => Reservation::Sink,
            "postmaster" | "abuse" => Reservation::Platform,
            other if self.names.contains(other) => Reservation::Refused,
            _ => Reservation::None,
        }
    }

    /// The names in order, as published in `/v1/config`.
    pub fn sorted(&self) -> Vec<&str> {
        let reserved = self.names.iter().filter(|_| !self.is_sink);
        let mut names: Vec<&str> = reserved.map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::super::RecipientAddress;
    use super::*;

    #[test]
    fn ignores_the_tag_of_reserved_names() {
        let reserved = ReservedLocalParts::new(ReservedLocalParts::DEFAULT);
        let of =
            |text: &str| reserved.reservation_of(RecipientAddress::parse(text).unwrap().base_local_part());
        assert_eq!(of("Postmaster+x@b.example"), Reservation::Platform);
        assert_eq!(of("ADMIN+x+y@b.example"), Reservation::Refused);
        assert_eq!(of("administration@b.example"), Reservation::None);
    }

    #[test]
    fn reserves_nothing_in_a_sink() {
        let reserved = ReservedLocalParts::new(ReservedLocalParts::DEFAULT).with_sink(true);
        assert_eq!(reserved.reservation_of("postmaster"), Reservation::Sink);
        assert_eq!(reserved.reservation_of("a"), Reservation::Sink);
        assert!(reserved.sorted().is_empty());
    }
}
