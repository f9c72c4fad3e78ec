//! Scheduled kills of an operator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempmail_tests::kubernetes::{ApiProxy, ApiRequest, OperatorProcess, StopPoint, StopReached, Team};

use super::statement::{StatementCounter, StatementGate};

/// Where an operator is killed.
#[derive(Debug, Clone, Copy)]
pub(super) enum KillPoint {
    /// Before or after a write to the API server.
    Request(StopPoint),
    /// At a write to Postgres, which carries it out.
    Statement,
}

/// An operator that is killed at a certain write, unless the kill is disarmed before.
#[derive(Clone)]
pub(super) struct Victim {
    operator: OperatorProcess,
    // Locked during the kill, so that disarming waits for its end.
    state: Arc<Mutex<KillState>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KillState {
    Armed,
    Killed,
    Disarmed,
}

impl Victim {
    fn new(operator: &OperatorProcess) -> Self {
        Self { operator: operator.clone(), state: Arc::new(Mutex::new(KillState::Armed)) }
    }

    /// Kills it, unless that is disarmed; returns when it is gone.
    pub(super) fn kill(&self) {
        let mut state = self.state();
        if *state == KillState::Armed {
            self.operator.killer()();
            *state = KillState::Killed;
        }
    }

    /// Disarms the kill; whether it was killed before.
    fn disarm(&self) -> bool {
        let mut state = self.state();
        if *state == KillState::Armed {
            *state = KillState::Disarmed;
        }
        *state == KillState::Killed
    }

    fn state(&self) -> MutexGuard<'_, KillState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A kill that is scheduled.
pub(super) struct Kill {
    victim: Victim,
    stop: Stop,
}

/// What stops the write at which the operator is killed.
enum Stop {
    Request(StopReached),
    Statement(StatementGate),
}

impl Kill {
    /// At the `nth` write of a team's objects that passes a proxy.
    pub(super) fn at_request(
        team: &Team,
        nth: usize,
        point: StopPoint,
        proxy: &ApiProxy,
        operator: &OperatorProcess,
    ) -> Self {
        let (tenant, namespace) = (team.tenant.clone(), team.namespace.name().to_owned());
        let victim = Victim::new(operator);
        let (armed, killed) = (victim.clone(), victim.clone());
        let matches = move |request: &ApiRequest| {
            *armed.state() == KillState::Armed
                && (request.namespace.as_ref() == Some(&namespace) || request.name.as_ref() == Some(&tenant))
        };
        let reached = proxy.stop_at_matching_write(matches, nth, point, move || killed.kill());
        Self { victim, stop: Stop::Request(reached) }
    }

    /// At the `nth` statement from now on.
    pub(super) async fn at_statement(
        statements: &StatementCounter,
        nth: usize,
        operator: &OperatorProcess,
    ) -> Self {
        let victim = Victim::new(operator);
        let gate = statements.kill_at(nth, victim.clone()).await;
        Self { victim, stop: Stop::Statement(gate) }
    }

    /// Whether it happened.
    pub(super) fn has_happened(&self) -> bool {
        *self.victim.state() == KillState::Killed
    }

    /// Disarms it, so that later writes, such as a usage that is counted again, kill nothing, and returns when nothing stops
    /// another operator's writes. Whether it happened before.
    pub(super) async fn disarm(self) -> bool {
        let was_killed = self.victim.disarm();
        match self.stop {
            // The proxy closes its connections after the kill.
            Stop::Request(mut reached) if was_killed => reached.wait().await,
            Stop::Request(_) => {}
            Stop::Statement(gate) => gate.open().await,
        }
        was_killed
    }
}
