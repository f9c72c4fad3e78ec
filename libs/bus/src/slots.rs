//! Wait slots: how many waits may be open under one key.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

/// What waits are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SlotKey {
    /// Long-polls of an API token, by its id.
    TokenWaits(Uuid),
    /// Long-polls of one tenant on one address, so that no tenant can lock another out.
    AddressWaits {
        /// The tenant that waits.
        tenant: Uuid,
        /// The key of the exact address.
        address: Uuid,
    },
}

/// The places that are taken. Keys without a taken place use no memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots {
    taken: Arc<Mutex<HashMap<SlotKey, usize>>>,
}

impl Slots {
    pub(crate) fn try_take(&self, key: SlotKey, max: usize) -> Option<Slot> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.entry(key) {
            Entry::Occupied(entry) if *entry.get() >= max => return None,
            Entry::Vacant(_) if max == 0 => return None,
            entry => *entry.or_insert(0) += 1,
        }
        Some(Slot { key, slots: self.clone() })
    }

    fn give_back(&self, key: SlotKey) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut entry) = taken.entry(key) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
#[must_use = "the place is given back when the slot is dropped"]
pub struct Slot {
    key: SlotKey,
    slots: Slots,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.give_back(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_back_when_its_slot_is_dropped() {
        let slots = Slots::default();
        let key = SlotKey::AddressWaits { tenant: Uuid::from_u128(1), address: Uuid::from_u128(2) };
        let first = slots.try_take(key, 2);
        let second = slots.try_take(key, 2);
        assert!(first.is_some() && second.is_some());
        assert!(slots.try_take(key, 2).is_none());
        drop(first);
        assert!(slots.try_take(key, 2).is_some());
        drop(second);
        assert!(slots.taken.lock().unwrap().is_empty());
    }

    #[test]
    fn keys_do_not_share_places() {
        let slots = Slots::default();
        let id = Uuid::from_u128(1);
        let _token = slots.try_take(SlotKey::TokenWaits(id), 1).unwrap();
        let other = SlotKey::AddressWaits { tenant: id, address: id };
        let _address = slots.try_take(other, 1).unwrap();
        assert!(slots.try_take(SlotKey::TokenWaits(id), 1).is_none());
        assert!(slots.try_take(SlotKey::TokenWaits(Uuid::from_u128(2)), 0).is_none());
    }
}
