//! Kills of an operator that are to come.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempmail_tests::kubernetes::{ApiProxy, ApiRequest, OperatorProcess, Reached, Team, When};

use super::statement::{AtStatement, Statements};

/// Where an operator is killed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// At a write to the API server, which does not see it, or has carried it out.
    Request(When),
    /// At a write to Postgres, which carries it out.
    Statement,
}

/// A kill, at a write about a team that its proxy sees, or at any statement.
pub(super) enum Kill {
    AtRequest { reached: Reached, armed: Arc<AtomicBool> },
    AtStatement(AtStatement),
}

impl Kill {
    pub(super) fn at_request(
        team: &Team<'_>,
        nth: usize,
        when: When,
        (proxy, operator): (&ApiProxy, &OperatorProcess),
    ) -> Self {
        let (tenant, namespace) = (team.tenant.clone(), team.namespace.name().to_owned());
        let armed = Arc::new(AtomicBool::new(true));
        let is_armed = Arc::clone(&armed);
        let is_about = move |request: &ApiRequest| {
            is_armed.load(Ordering::Relaxed)
                && (request.namespace.as_ref() == Some(&namespace) || request.name.as_ref() == Some(&tenant))
        };
        Self::AtRequest { reached: proxy.at_write_that(is_about, nth, when, operator.killer()), armed }
    }

    pub(super) async fn at_statement(
        statements: &Statements,
        nth: usize,
        operator: &OperatorProcess,
    ) -> Self {
        Self::AtStatement(statements.kill_at(nth, operator.killer()).await)
    }

    /// Whether it came.
    pub(super) fn has_come(&self) -> bool {
        match self {
            Self::AtRequest { reached, .. } => reached.has_come(),
            Self::AtStatement(kill) => kill.has_come(),
        }
    }

    /// What comes later, such as a usage that is counted anew, kills nobody.
    pub(super) async fn disarm(self) {
        match self {
            Self::AtRequest { armed, .. } => armed.store(false, Ordering::Relaxed),
            Self::AtStatement(kill) => kill.disarm().await,
        }
    }
}
