//! Whether Redis is well, for metrics and the log: one line a change.

use super::away::Away;

/// What was said last.
#[derive(Debug, Default)]
pub(super) struct Health {
    well: Option<bool>,
}

impl Health {
    /// Nothing is known yet, so limits hold in each process alone.
    pub(super) fn begin() -> Self {
        report(false);
        Self::default()
    }

    pub(super) fn is_connected(&mut self) {
        if self.well != Some(true) {
            tracing::info!("Redis is well: limits hold over all processes");
        }
        self.well = Some(true);
        report(true);
    }

    pub(super) fn is_away(&mut self, why: &Away) {
        if self.well != Some(false) {
            tracing::warn!(%why, "Redis is away: limits hold in each process alone, arrivals are looked for");
        }
        self.well = Some(false);
        report(false);
    }
}

fn report(well: bool) {
    metrics::gauge!("tempmail_bus_degraded").set(if well { 0.0 } else { 1.0 });
}
