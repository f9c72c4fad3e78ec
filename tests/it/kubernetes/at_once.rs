//! Very many objects at once, some of which can't be made true.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use serde_json::{Value, json};
use tempmail_crds::CustomDomain;
use tempmail_tests::kubernetes::{Cluster, OperatorProcess, Team, World, condition};
use tempmail_tests::rows::SYSTEM_DOMAIN;
use tempmail_tests::wait::{DEADLINE, eventually};
use tokio::time::{Instant, sleep};

use super::bad_input::loosen;

/// Objects of the test, where `AT_ONCE` in the environment says no other number.
const OBJECTS: usize = 1_000;
/// Requests under way at once.
const REQUESTS: usize = 50;
/// Time between two counts.
const LOOK: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn many_objects_settle_around_those_that_cannot_and_leave_nothing_behind() {
    let world = World::without_operator().await;
    loosen(&world, "customdomains").await;
    let operator = operator(&world).await;
    let count = std::env::var_os("AT_ONCE").map_or(OBJECTS, |count| count.to_str().unwrap().parse().unwrap());
    let team = Team::with(&world.cluster, &format!("  limits: {{customDomains: {count}}}")).await;
    world.dns.domain(&format!("{}.example", team.tenant), 1).await;
    let site = Site { world: &world, team: &team, api: api(&world, &team) };
    let (unreadable, reserved) = (count / 2, count / 3);
    let spec = |nth: usize| match nth {
        nth if nth == unreadable => json!({"domain": [nth]}),
        nth if nth == reserved => json!({"domain": format!("mail.{SYSTEM_DOMAIN}")}),
        nth => json!({"domain": team.domain(&format!("d{nth}"))}),
    };
    let bad = site.object("unreadable", spec(unreadable));
    eventually("the rules are gone", || async {
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        site.api.create(&dry_run, &bad).await.ok()
    })
    .await;

    stream::iter(0..count)
        .for_each_concurrent(REQUESTS, async |nth| {
            let object = site.object(&format!("d{nth}"), spec(nth));
            site.api.create(&PostParams::default(), &object).await.expect("it is taken");
        })
        .await;
    until("domains whose records were looked for", count - 2, || site.looked_for()).await;
    until("objects that say how they stand", count, async || {
        site.list().await.iter().filter(|object| is_settled(object)).count()
    })
    .await;
    let objects = site.list().await;
    let with_reason = |reason: &str| -> Vec<&Value> {
        objects.iter().filter(|object| condition(object, "Ready").unwrap()["reason"] == reason).collect()
    };
    let good = with_reason("TxtRecordMissing");
    let domains: HashSet<&str> =
        good.iter().map(|object| object["status"]["domainId"].as_str().expect("a domain")).collect();
    assert_eq!((good.len(), domains.len()), (count - 2, count - 2), "a domain each");
    let names = |objects: Vec<&Value>| -> Vec<Value> {
        objects.iter().map(|object| object["metadata"]["name"].clone()).collect()
    };
    assert_eq!(names(with_reason("InvalidSpec")), [format!("d{unreadable}")]);
    assert_eq!(names(with_reason("ReservedDomain")), [format!("d{reserved}")]);

    stream::iter(&objects)
        .for_each_concurrent(REQUESTS, async |object| {
            let name = object["metadata"]["name"].as_str().expect("a name");
            site.api.delete(name, &DeleteParams::default()).await.expect("it is deleted");
        })
        .await;
    until("objects, their rows included", 0, || site.noted()).await;
    until("objects", 0, async || site.list().await.len()).await;
    assert_eq!(site.domains().await, 0, "no domain is left");
    assert!(operator.leads().await, "it led all along");
}

/// One with the times of a real installation: no lease that a busy machine loses, and no domain that
/// is looked at every second.
async fn operator(world: &World<Cluster>) -> OperatorProcess {
    let mut config = world.app.config().clone();
    config.operator.lease_seconds = 15;
    config.dns.interval_seconds = 300;
    let url = world.app.database().url();
    let operator = OperatorProcess::begin(&config, &url, world.cluster.kubeconfig(), &[]);
    operator.wait_until_ready().await;
    operator.comes_to_lead().await;
    operator
}

fn api(world: &World<Cluster>, team: &Team<'_>) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<CustomDomain>(&());
    Api::namespaced_with(world.cluster.client(), team.namespace.name(), &resource)
}

/// Counts until there are as many; it takes as long as it takes, but not [`DEADLINE`] without any
/// progress.
async fn until(what: &str, expected: usize, mut count: impl AsyncFnMut() -> usize) {
    let (mut last, mut progress) = (usize::MAX, Instant::now());
    loop {
        let now = count().await;
        if now == expected {
            return;
        }
        if now != last {
            (last, progress) = (now, Instant::now());
        }
        assert!(progress.elapsed() < DEADLINE, "{what}: {now} instead of {expected}, and no change");
        sleep(LOOK).await;
    }
}

/// Whether an object says of what it is now how it stands, and is waiting for nothing but its owner.
fn is_settled(object: &Value) -> bool {
    let reason = condition(object, "Ready").and_then(|ready| ready["reason"].as_str());
    object["status"]["observedGeneration"] == object["metadata"]["generation"]
        && matches!(reason, Some("TxtRecordMissing" | "InvalidSpec" | "ReservedDomain"))
}

struct Site<'a> {
    world: &'a World<Cluster>,
    team: &'a Team<'a>,
    api: Api<DynamicObject>,
}

impl Site<'_> {
    fn object(&self, name: &str, mut spec: Value) -> DynamicObject {
        spec["tenantRef"] = json!({"name": self.team.tenant});
        DynamicObject::new(name, &ApiResource::erase::<CustomDomain>(&())).data(json!({ "spec": spec }))
    }

    async fn list(&self) -> Vec<Value> {
        let list = self.api.list(&ListParams::default()).await.expect("the API server lists them");
        list.iter().map(|object| serde_json::to_value(object).expect("it is JSON")).collect()
    }

    /// Domains of the objects, whose records were looked for and are not there.
    async fn looked_for(&self) -> usize {
        self.count(
            "SELECT count(*) FROM domain d JOIN resource r ON r.row_id = d.id
              WHERE r.namespace = $1 AND d.removed_at IS NULL AND d.txt_result = 'missing'",
            self.team.namespace.name(),
        )
        .await
    }

    /// Objects that Postgres knows of.
    async fn noted(&self) -> usize {
        self.count("SELECT count(*) FROM resource WHERE namespace = $1", self.team.namespace.name()).await
    }

    /// Domains of the tenant.
    async fn domains(&self) -> usize {
        let domains = "SELECT count(*) FROM domain d JOIN tenant t ON t.id = d.tenant
                        WHERE t.name = $1 AND d.removed_at IS NULL";
        self.count(domains, &self.team.tenant).await
    }

    async fn count(&self, statement: &'static str, of: &str) -> usize {
        let count: i64 = sqlx::query_scalar(statement)
            .bind(of)
            .fetch_one(&self.world.app.pool)
            .await
            .expect("Postgres answers");
        usize::try_from(count).expect("a count")
    }
}
