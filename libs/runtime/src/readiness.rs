//! Whether a process is ready, and what it still waits for; with its [`Liveness`], what probes are answered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::liveness::Liveness;

/// The components that are not ready, with reasons; without any the process is ready. Clones share
/// their state.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    not_ready: Arc<Mutex<BTreeMap<&'static str, String>>>,
    liveness: Liveness,
}

impl Readiness {
    /// Marks `component` as not ready. The reason is published: no personal data.
    pub fn set_not_ready(&self, component: &'static str, reason: impl Into<String>) {
        self.lock().insert(component, reason.into());
        metrics::gauge!("tempmail_not_ready", "component" => component).set(1.0);
    }

    /// Marks `component` as ready.
    pub fn set_ready(&self, component: &'static str) {
        self.lock().remove(component);
        metrics::gauge!("tempmail_not_ready", "component" => component).set(0.0);
    }

    /// The components that are not ready, by name, with their reasons; empty if the process is ready.
    pub fn report(&self) -> Vec<(&'static str, String)> {
        self.lock().iter().map(|(component, reason)| (*component, reason.clone())).collect()
    }

    /// Whether the tasks of the process make progress.
    pub fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, String>> {
        // Each change is a single insert or remove, so the map is valid after a panic too.
        self.not_ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_components_until_they_are_ready() {
        let readiness = Readiness::default();
        let other = readiness.clone();
        other.set_not_ready("postgres", "no connection yet");
        other.set_not_ready("postgres", "refused");
        assert_eq!(readiness.report(), [("postgres", "refused".to_owned())]);
        readiness.set_ready("postgres");
        assert!(other.report().is_empty());
    }
}
