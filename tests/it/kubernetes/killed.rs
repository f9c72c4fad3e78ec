//! An operator that is killed at any of its writes, to the API server or to Postgres, leaves nothing
//! behind that another does not bring to the same end.

mod kill;
mod picture;
mod statement;

use std::time::Duration;

use tempmail_tests::kubernetes::{ApiProxy, Cluster, OperatorProcess, Team, When, World};
use tempmail_tests::rows::SYSTEM_DOMAIN;
use tempmail_tests::wait::{DEADLINE, eventually};
use tokio::time::{Instant, sleep};

use self::kill::{Kill, Place};
use self::picture::{Picture, works};
use self::statement::Statements;

/// Objects of a kind, for which an operator is killed. They are named as the tenant is.
#[derive(Debug, Clone, Copy)]
struct Kind {
    name: &'static str,
    /// Whether it is a tenant's, in a namespace.
    is_of_tenant: bool,
    /// What it says beside its tenant.
    spec: fn(&Team<'_>) -> String,
    /// The reason of its condition Ready, in the end.
    settles: &'static str,
    /// Whether it has a secret that can be made anew.
    rotates: bool,
}

/// All that are killed for.
const KINDS: &[Kind] = &[
    Kind {
        name: "SystemDomain",
        is_of_tenant: false,
        spec: |team| format!("domain: {}", team.domain("sys")),
        settles: "Ready",
        rotates: false,
    },
    Kind {
        name: "CustomDomain",
        is_of_tenant: true,
        spec: |team| format!("domain: {}, deletionPolicy: Delete", team.domain("mail")),
        settles: "DnsLookupFailed",
        rotates: false,
    },
    Kind {
        name: "Webhook",
        is_of_tenant: true,
        spec: |_team| "url: 'https://hooks.example.com/mail'".to_owned(),
        settles: "Ready",
        rotates: true,
    },
    Kind {
        name: "ApiToken",
        is_of_tenant: true,
        spec: |_team| "type: Pro".to_owned(),
        settles: "Ready",
        rotates: true,
    },
    Kind {
        name: "Mailbox",
        is_of_tenant: true,
        spec: |team| format!("address: {}@{SYSTEM_DOMAIN}", team.tenant),
        settles: "Ready",
        rotates: true,
    },
];

/// Limits that a tenant has room for everything in.
const TENANT: &str = "  deletionPolicy: Delete";

/// What a user does while the operator is killed.
#[derive(Debug, Clone, Copy)]
enum Act {
    CreateTenant,
    DeleteTenant,
    Create(Kind),
    Rotate(Kind),
    Delete(Kind),
}

impl Act {
    /// Everything that comes before it, with an operator that lives.
    async fn prepare(self, team: &Team<'_>) {
        if matches!(self, Self::CreateTenant) {
            return;
        }
        team.declare_tenant(TENANT).await;
        if let Self::Rotate(kind) | Self::Delete(kind) = self {
            create(kind, team).await;
            team.wait_for_reason(&object(kind, team), "Ready", kind.settles).await;
        }
    }

    async fn begin(self, team: &Team<'_>) {
        match self {
            Self::CreateTenant => team.apply_tenant(TENANT).await,
            Self::DeleteTenant => delete(team, &format!("tenant/{}", team.tenant)).await,
            Self::Create(kind) => create(kind, team).await,
            Self::Rotate(kind) => {
                let asked = "tempmail.dev/rotate-requested-at=2026-11-21T00:00:00Z";
                team.kubectl(&["annotate", &object(kind, team), asked]).await.expect("it is annotated");
            }
            Self::Delete(kind) => delete(team, &object(kind, team)).await,
        }
    }

    /// Returns when nobody is killed, and it has come to its end.
    async fn end(self, team: &Team<'_>) {
        match self {
            Self::CreateTenant => {
                let tenant = format!("tenant/{}", team.tenant);
                team.wait(&tenant, "Ready").await;
            }
            Self::DeleteTenant => gone(team, &format!("tenant/{}", team.tenant)).await,
            Self::Create(kind) => {
                team.wait_for_reason(&object(kind, team), "Ready", kind.settles).await;
            }
            Self::Rotate(kind) => {
                let handled = "--for=jsonpath={.status.lastHandledRotateAt}=2026-11-21T00:00:00Z";
                let waited = team.kubectl(&["wait", &object(kind, team), handled, "--timeout=120s"]).await;
                waited.expect("the secret is made anew");
            }
            Self::Delete(kind) => gone(team, &object(kind, team)).await,
        }
    }
}

async fn create(kind: Kind, team: &Team<'_>) {
    let spec = (kind.spec)(team);
    let applied = if kind.is_of_tenant {
        team.apply(kind.name, &team.tenant, &spec).await
    } else {
        team.apply_without_namespace(kind.name, &spec).await
    };
    applied.expect("it is taken");
}

async fn delete(team: &Team<'_>, object: &str) {
    team.kubectl(&["delete", object, "--wait=false"]).await.expect("it is deleted");
}

async fn gone(team: &Team<'_>, object: &str) {
    eventually("the object is gone", async || team.kubectl(&["get", object]).await.err().map(drop)).await;
}

fn object(kind: Kind, team: &Team<'_>) -> String {
    format!("{}/{}", kind.name.to_lowercase(), team.tenant)
}

/// With `KILLED=everywhere` in the environment; else the second act on a secret, and kills that differ
/// from others by what is read alone, are left out.
fn everywhere() -> bool {
    std::env::var_os("KILLED").is_some_and(|text| text == "everywhere")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_killed_at_any_write_is_made_good_by_the_next() {
    let world = World::without_operator().await;
    let statements = Statements::of(&world.app.pool).await;
    let proxy = ApiProxy::start(&world.cluster).await;
    let operator = OperatorProcess::start(&world.app, &proxy.kubeconfig()).await;
    operator.comes_to_lead().await;
    let site = Site { world, proxy, statements, operator };
    site.kill_at_each_write(Act::CreateTenant).await;
    for &kind in KINDS {
        site.kill_at_each_write(Act::Create(kind)).await;
        if kind.rotates && everywhere() {
            site.kill_at_each_write(Act::Rotate(kind)).await;
        }
        site.kill_at_each_write(Act::Delete(kind)).await;
    }
    site.kill_at_each_write(Act::DeleteTenant).await;
}

struct Site {
    world: World<Cluster>,
    proxy: ApiProxy,
    statements: Statements,
    operator: OperatorProcess,
}

impl Site {
    async fn kill_at_each_write(&self, act: Act) {
        let team = Team::undeclared(&self.world.cluster).await;
        act.prepare(&team).await;
        act.begin(&team).await;
        act.end(&team).await;
        let expected = Picture::of(&team, &self.world).await;
        let is_deletion = matches!(act, Act::Delete(_) | Act::DeleteTenant);
        for place in [Place::Request(When::Before), Place::Request(When::After), Place::Statement] {
            if is_deletion && matches!(place, Place::Request(When::After)) && !everywhere() {
                // The finalizer is the last write: nothing comes after it.
                continue;
            }
            let mut nth = 1;
            while self.kill(act, nth, place, &expected).await {
                nth += 1;
            }
            assert!(nth > 1, "{act:?} needs no write");
        }
    }

    /// Whether there was such a write.
    async fn kill(&self, act: Act, nth: usize, place: Place, expected: &Picture) -> bool {
        let team = Team::undeclared(&self.world.cluster).await;
        act.prepare(&team).await;
        let what = format!("{act:?}, killed at write {nth} ({place:?})");
        let kill = match place {
            Place::Request(when) => Kill::at_request(&team, nth, when, (&self.proxy, &self.operator)),
            Place::Statement => Kill::at_statement(&self.statements, nth, &self.operator).await,
        };
        act.begin(&team).await;
        self.until(expected, &team, || kill.has_come(), &what).await;
        let was_killed = kill.disarm().await;
        if was_killed {
            self.operator.start_again(&self.world).await;
            self.until(expected, &team, || false, &what).await;
        }
        works(&team, &self.world).await;
        was_killed
    }

    /// Returns when all is as it should be, or the operator was killed.
    async fn until(&self, expected: &Picture, team: &Team<'_>, has_come: impl Fn() -> bool, what: &str) {
        let give_up = Instant::now() + DEADLINE;
        while !has_come() {
            let picture = Picture::of(team, &self.world).await;
            if picture == *expected {
                return;
            }
            assert!(Instant::now() < give_up, "{what}:\n{picture:#?}\ninstead of\n{expected:#?}");
            sleep(Duration::from_millis(50)).await;
        }
    }
}
