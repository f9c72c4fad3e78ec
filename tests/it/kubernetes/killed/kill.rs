//! Kills of an operator that are to come.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempmail_tests::kubernetes::{ApiProxy, ApiRequest, OperatorProcess, Team, When};

use super::statement::{Gate, Statements};

/// Where an operator is killed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// At a write to the API server, which does not see it, or has carried it out.
    Request(When),
    /// At a write to Postgres, which carries it out.
    Statement,
}

/// An operator that is killed at a certain moment, unless it is spared before.
#[derive(Clone)]
pub(super) struct Victim {
    operator: OperatorProcess,
    // Held while it dies, so whoever spares it knows whether it lives.
    fate: Arc<Mutex<Fate>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Awaited,
    Killed,
    Spared,
}

impl Victim {
    fn new(operator: &OperatorProcess) -> Self {
        Self { operator: operator.clone(), fate: Arc::new(Mutex::new(Fate::Awaited)) }
    }

    /// Returns when it is dead, or was spared.
    pub(super) fn kill(&self) {
        let mut fate = self.fate();
        if *fate == Fate::Awaited {
            self.operator.killer()();
            *fate = Fate::Killed;
        }
    }

    /// Nobody kills it any more; whether somebody did.
    fn spare(&self) -> bool {
        let mut fate = self.fate();
        if *fate == Fate::Awaited {
            *fate = Fate::Spared;
        }
        *fate == Fate::Killed
    }

    fn fate(&self) -> MutexGuard<'_, Fate> {
        self.fate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A kill that is waited for.
pub(super) struct Kill {
    victim: Victim,
    gate: Option<Gate>,
}

impl Kill {
    /// At the `nth` write about a team that comes through `proxy`.
    pub(super) fn at_request(
        team: &Team<'_>,
        nth: usize,
        when: When,
        (proxy, operator): (&ApiProxy, &OperatorProcess),
    ) -> Self {
        let (tenant, namespace) = (team.tenant.clone(), team.namespace.name().to_owned());
        let victim = Victim::new(operator);
        let (awaits, killed) = (victim.clone(), victim.clone());
        let is_about = move |request: &ApiRequest| {
            *awaits.fate() == Fate::Awaited
                && (request.namespace.as_ref() == Some(&namespace) || request.name.as_ref() == Some(&tenant))
        };
        proxy.at_write_that(is_about, nth, when, move || killed.kill());
        Self { victim, gate: None }
    }

    /// At the `nth` statement that comes from now on.
    pub(super) async fn at_statement(
        statements: &Statements,
        nth: usize,
        operator: &OperatorProcess,
    ) -> Self {
        let victim = Victim::new(operator);
        let gate = statements.kill_at(nth, victim.clone()).await;
        Self { victim, gate: Some(gate) }
    }

    /// Whether it came.
    pub(super) fn has_come(&self) -> bool {
        *self.victim.fate() == Fate::Killed
    }

    /// It does not come any more: what is written later, such as a usage that is counted anew, kills
    /// nobody. Whether it came before.
    pub(super) async fn disarm(self) -> bool {
        let was_killed = self.victim.spare();
        if let Some(gate) = self.gate {
            gate.open().await;
        }
        was_killed
    }
}
