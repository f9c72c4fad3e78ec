//! The records of a domain at one server.

use std::sync::Arc;

use hickory_proto::rr::rdata::SOA;
use hickory_proto::rr::{Name, RData, Record, RecordType, RrKey};
use hickory_server::store::in_memory::InMemoryZoneHandler;
use hickory_server::zone_handler::{AxfrPolicy, ZoneType};

/// A day, so that caching shows up in tests; also for negative replies.
const TTL: u32 = 86_400;
const SERIAL: u32 = 1;

/// A fully qualified name.
///
/// # Panics
/// The text is not a DNS name.
pub(crate) fn name(text: &str) -> Name {
    let mut name = Name::from_ascii(text).expect("a name of DNS");
    name.set_fqdn(true);
    name
}

/// A zone's records.
#[derive(Clone)]
pub(crate) struct Zone {
    pub handler: Arc<InMemoryZoneHandler>,
}

impl Zone {
    pub(crate) fn empty(apex: &Name) -> Self {
        let mut handler = InMemoryZoneHandler::empty(apex.clone(), ZoneType::Primary, AxfrPolicy::Deny);
        let timer = 86_400;
        let soa = SOA::new(apex.clone(), name("hostmaster.test"), SERIAL, timer, timer, timer, TTL);
        assert!(handler.upsert_mut(Record::from_rdata(apex.clone(), TTL, RData::SOA(soa)), SERIAL));
        Self { handler: Arc::new(handler) }
    }

    /// Replaces the records of one type.
    pub(crate) async fn set(&self, at: &Name, record_type: RecordType, records: Vec<RData>) {
        self.handler.records_mut().await.remove(&RrKey::new(at.into(), record_type));
        for data in records {
            self.add(at, data).await;
        }
    }

    /// Adds a record.
    ///
    /// # Panics
    /// A CNAME record would have other records beside it.
    pub(crate) async fn add(&self, at: &Name, data: RData) {
        let record = Record::from_rdata(at.clone(), TTL, data);
        assert!(self.handler.upsert(record, SERIAL).await, "the record is allowed beside the others at {at}");
    }

    /// Removes all records at a name except SOA and NS.
    pub(crate) async fn clear(&self, at: &Name) {
        let own = [RecordType::SOA, RecordType::NS];
        self.handler
            .records_mut()
            .await
            .retain(|key, _| Name::from(key.name().clone()) != *at || own.contains(&key.record_type));
    }
}
