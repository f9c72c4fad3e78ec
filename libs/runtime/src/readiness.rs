//! What a process still lacks to do its work.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What is missing, by component. Clones share it. Nothing missing means ready.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    missing: Arc<Mutex<BTreeMap<&'static str, String>>>,
}

impl Readiness {
    /// Says that `component` is not there, and why, in words without personal data.
    pub fn set_not_ready(&self, component: &'static str, why: impl Into<String>) {
        self.lock().insert(component, why.into());
    }

    /// Says that `component` is there.
    pub fn set_ready(&self, component: &'static str) {
        self.lock().remove(component);
    }

    /// What is missing and why, by the name of the component; empty when ready.
    pub fn report(&self) -> Vec<(&'static str, String)> {
        self.lock().iter().map(|(component, why)| (*component, why.clone())).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, String>> {
        // Every change is a single insert or remove: a panic elsewhere leaves it whole.
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_what_is_missing_until_it_is_there() {
        let readiness = Readiness::default();
        let other = readiness.clone();
        other.set_not_ready("postgres", "no connection yet");
        other.set_not_ready("postgres", "refused");
        assert_eq!(readiness.report(), [("postgres", "refused".to_owned())]);
        readiness.set_ready("postgres");
        assert!(other.report().is_empty());
    }
}
