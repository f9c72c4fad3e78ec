//! The types of records, and how each is read and shown.

use std::net::IpAddr;

use hickory_proto::rr::{Name, RData, RecordType};

use crate::vote::host_text;

/// Aliases that are followed from one name at most.
pub(super) const ALIASES_MAX: usize = 8;

/// A type of record whose data is read as `R`.
pub(super) struct RecordKind<R> {
    /// The type to query.
    pub record_type: RecordType,
    /// The data of a record of this type.
    pub data: fn(&RData) -> Option<R>,
    /// The text of a record of this type, as its owner is shown it; `None` if it is not shown.
    pub shown: fn(&RData) -> Option<String>,
    /// Aliases that may lead to a record.
    pub max_aliases: usize,
}

/// Texts: the character strings of each record, joined.
pub(super) const TXT: RecordKind<Vec<u8>> = RecordKind {
    record_type: RecordType::TXT,
    data: |data| match data {
        RData::TXT(txt) => Some(txt.txt_data.concat()),
        _ => None,
    },
    shown: |data| match data {
        RData::TXT(txt) => Some(String::from_utf8_lossy(&txt.txt_data.concat()).into_owned()),
        _ => None,
    },
    max_aliases: ALIASES_MAX,
};

/// Exchanges; their preference is shown, but not compared.
pub(super) const MX: RecordKind<Name> = RecordKind {
    record_type: RecordType::MX,
    data: |data| match data {
        RData::MX(mx) => Some(mx.exchange.clone()),
        _ => None,
    },
    shown: |data| match data {
        RData::MX(mx) => Some(format!("{} {}", mx.preference, host_text(&mx.exchange))),
        _ => None,
    },
    max_aliases: 0,
};

/// Name servers.
pub(super) const NS: RecordKind<Name> = RecordKind {
    record_type: RecordType::NS,
    data: |data| match data {
        RData::NS(host) => Some(host.0.clone()),
        _ => None,
    },
    shown: |_| None,
    max_aliases: 0,
};

/// IPv4 addresses.
pub(super) const A: RecordKind<IpAddr> = RecordKind {
    record_type: RecordType::A,
    data: |data| match data {
        RData::A(address) => Some(address.0.into()),
        _ => None,
    },
    shown: |_| None,
    max_aliases: ALIASES_MAX,
};

/// IPv6 addresses.
pub(super) const AAAA: RecordKind<IpAddr> = RecordKind {
    record_type: RecordType::AAAA,
    data: |data| match data {
        RData::AAAA(address) => Some(address.0.into()),
        _ => None,
    },
    shown: |_| None,
    max_aliases: ALIASES_MAX,
};
