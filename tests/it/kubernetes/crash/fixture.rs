//! An operator that is killed and started again, and what has to be the same in the end.

use std::time::Duration;

use tempmail_tests::kubernetes::{ApiProxy, Cluster, Installation, OperatorProcess, Team};
use tempmail_tests::wait::DEADLINE;
use tokio::time::{Instant, sleep};

use super::action::UserAction;
use super::kill::{Kill, KillPoint};
use super::snapshot::{Snapshot, assert_credentials_work};
use super::statement::StatementCounter;

/// Time between two snapshots.
const POLL: Duration = Duration::from_millis(100);

/// An operator as a process, behind a proxy, and a database whose statements can be stopped.
pub(super) struct CrashFixture {
    // Dropped in this order: the operator, then what it uses.
    operator: OperatorProcess,
    proxy: ApiProxy,
    statements: StatementCounter,
    installation: Installation<Cluster>,
}

impl CrashFixture {
    pub(super) async fn start() -> Self {
        let installation = Installation::without_operator().await;
        let statements = StatementCounter::install(&installation.app.pool).await;
        let proxy = ApiProxy::start(&installation.cluster).await;
        let operator = OperatorProcess::start_leader_behind(&proxy, &installation).await;
        Self { operator, proxy, statements, installation }
    }

    /// Kills the operator at the first write of an action, then at the second, and so on.
    pub(super) async fn kill_at_each_write(&self, action: UserAction, point: KillPoint) {
        let reference = self.reference(action).await;
        let mut nth = 1;
        while self.kill(action, nth, point, &reference).await {
            nth += 1;
        }
        assert!(nth > 1, "{action:?} has no write");
    }

    /// Kills the operator after its `nth` statement of an action.
    pub(super) async fn kill_after_statement(&self, action: UserAction, nth: usize) {
        let reference = self.reference(action).await;
        let was_killed = self.kill(action, nth, KillPoint::Statement, &reference).await;
        assert!(was_killed, "{action:?} has no statement {nth}");
    }

    /// The team of an action during which the operator is not killed.
    async fn reference(&self, action: UserAction) -> Team {
        let team = Team::without_tenant(&self.installation.cluster).await;
        action.prepare(&team).await;
        action.start(&team).await;
        action.finish(&team).await;
        team
    }

    /// Whether there was such a write.
    async fn kill(&self, action: UserAction, nth: usize, point: KillPoint, reference: &Team) -> bool {
        let team = Team::without_tenant(&self.installation.cluster).await;
        action.prepare(&team).await;
        let what = format!("{action:?}, killed at write {nth} ({point:?})");
        let kill = match point {
            KillPoint::Request(point) => Kill::at_request(&team, nth, point, &self.proxy, &self.operator),
            KillPoint::Statement => Kill::at_statement(&self.statements, nth, &self.operator).await,
        };
        action.start(&team).await;
        self.wait_until_same(reference, &team, || kill.has_happened(), &what).await;
        let was_killed = kill.disarm().await;
        if was_killed {
            self.operator.restart_as_leader(&self.installation).await;
            self.wait_until_same(reference, &team, || false, &what).await;
        }
        assert_credentials_work(&team, &self.installation).await;
        was_killed
    }

    /// Returns when a team has what the reference has, or the operator was killed. Both are looked at each time, since what
    /// follows an action, such as the end of its rows, also takes its time without a kill.
    async fn wait_until_same(
        &self,
        reference: &Team,
        team: &Team,
        was_killed: impl Fn() -> bool,
        what: &str,
    ) {
        let give_up = Instant::now() + DEADLINE;
        while !was_killed() {
            let expected = Snapshot::take(reference, &self.installation).await;
            let snapshot = Snapshot::take(team, &self.installation).await;
            if snapshot == expected {
                return;
            }
            assert!(Instant::now() < give_up, "{what}:\n{}", snapshot.differences(&expected));
            sleep(POLL).await;
        }
    }
}
