//! Types of records, and what is wanted of each.

use std::net::IpAddr;

use hickory_proto::rr::{Name, RData, RecordType};

use crate::finding::host_text;

/// Aliases that are followed from one name.
pub(super) const ALIASES_MAX: usize = 8;

/// A type of record whose data is read as `R`.
pub(super) struct Kind<R> {
    /// What to ask for.
    pub record_type: RecordType,
    /// What a record says, if it is of this type.
    pub data: fn(&RData) -> Option<R>,
    /// The record as whoever set it is shown it; `None` also where nobody is.
    pub shown: fn(&RData) -> Option<String>,
    /// Aliases that may stand before a record.
    pub links: usize,
}

/// Texts: the character strings of each record, joined.
pub(super) const TXT: Kind<Vec<u8>> = Kind {
    record_type: RecordType::TXT,
    data: |data| match data {
        RData::TXT(txt) => Some(txt.txt_data.concat()),
        _ => None,
    },
    shown: |data| match data {
        RData::TXT(txt) => Some(String::from_utf8_lossy(&txt.txt_data.concat()).into_owned()),
        _ => None,
    },
    links: ALIASES_MAX,
};

/// Exchanges; their preference is shown and does not count.
pub(super) const MX: Kind<Name> = Kind {
    record_type: RecordType::MX,
    data: |data| match data {
        RData::MX(mx) => Some(mx.exchange.clone()),
        _ => None,
    },
    shown: |data| match data {
        RData::MX(mx) => Some(format!("{} {}", mx.preference, host_text(&mx.exchange))),
        _ => None,
    },
    links: 0,
};

/// Name servers.
pub(super) const NS: Kind<Name> = Kind {
    record_type: RecordType::NS,
    data: |data| match data {
        RData::NS(host) => Some(host.0.clone()),
        _ => None,
    },
    shown: |_| None,
    links: 0,
};

/// IPv4 addresses.
pub(super) const A: Kind<IpAddr> = Kind {
    record_type: RecordType::A,
    data: |data| match data {
        RData::A(address) => Some(address.0.into()),
        _ => None,
    },
    shown: |_| None,
    links: ALIASES_MAX,
};

/// IPv6 addresses.
pub(super) const AAAA: Kind<IpAddr> = Kind {
    record_type: RecordType::AAAA,
    data: |data| match data {
        RData::AAAA(address) => Some(address.0.into()),
        _ => None,
    },
    shown: |_| None,
    links: ALIASES_MAX,
};
