//! A thousand CustomDomains.

mod chaos {
    use std::collections::HashSet;
    use std::time::Duration;

    use futures_util::{StreamExt as _, stream};
    use serde_json::Value;
    use tempmail_tests::fleet::Role;
    use tempmail_tests::kubernetes::{
        Cluster, Installation, OperatorProcess, Team, condition, condition_reason,
    };
    use tempmail_tests::rows::SYSTEM_DOMAIN;
    use tempmail_tests::wait::{DEADLINE, eventually};
    use tokio::time::{Instant, sleep};

    /// How many objects there are, unless `MANY_OBJECTS` in the environment says otherwise.
    const OBJECTS: usize = 1_000;
    /// Requests that are sent at once.
    const REQUESTS: usize = 50;
    /// Time between two counts.
    const POLL: Duration = Duration::from_secs(1);

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "chaos: takes 2 minutes"]
    async fn settles_many_objects_around_invalid_ones_and_leaves_nothing_behind() {
        let installation = Installation::without_operator().await;
        installation.cluster.remove_spec_validation("customdomains").await;
        let operator = start_operator(&installation).await;
        let count =
            std::env::var_os("MANY_OBJECTS").map_or(OBJECTS, |text| text.to_str().unwrap().parse().unwrap());
        let team =
            Team::with_spec(&installation.cluster, &format!("limits: {{customDomains: {count}}}")).await;
        installation.dns.domain(&format!("{}.example", team.tenant), 1).await;
        let fixture = ManyObjects { installation: &installation, team: &team, count };

        fixture.create().await;
        wait_for_count("domains whose records were checked", count - 2, || fixture.checked_domains()).await;
        wait_for_count("settled objects", count, async || {
            fixture.list().await.iter().filter(|object| is_settled(object)).count()
        })
        .await;
        fixture.assert_conditions().await;

        fixture.delete().await;
        wait_for_count("recorded objects", 0, || fixture.recorded_objects()).await;
        wait_for_count("objects", 0, async || fixture.list().await.len()).await;
        assert_eq!(fixture.domains().await, 0, "no domain is left");
        assert!(operator.is_leader().await, "the same process leads");
    }

    /// An operator with the times of a real installation: a lease that a busy machine keeps, and domains that
    /// are not checked every second.
    async fn start_operator(installation: &Installation<Cluster>) -> OperatorProcess {
        let mut config = installation.app.config().clone();
        config.operator.lease_seconds = 15;
        config.dns.interval_seconds = 300;
        let url = installation.app.database().role_url(Role::Operator);
        let operator = OperatorProcess::spawn(&config, &url, installation.cluster.kubeconfig());
        operator.wait_until_ready().await;
        operator.wait_until_leader().await;
        operator
    }

    /// Counts until the count is as expected. There is no limit but [`DEADLINE`] without any progress.
    async fn wait_for_count(what: &str, expected: usize, mut count: impl AsyncFnMut() -> usize) {
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
            sleep(POLL).await;
        }
    }

    /// Whether the newest spec of an object is reconciled.
    fn is_settled(object: &Value) -> bool {
        let reason = condition(object, "Ready").and_then(|ready| ready["reason"].as_str());
        object["status"]["observedGeneration"] == object["metadata"]["generation"]
            && matches!(reason, Some("TxtRecordMissing" | "InvalidSpec" | "ReservedDomain"))
    }

    struct ManyObjects<'a> {
        installation: &'a Installation<Cluster>,
        team: &'a Team,
        count: usize,
    }

    impl ManyObjects<'_> {
        /// The spec of the nth object: one cannot be read, and one has a reserved domain.
        fn spec(&self, nth: usize) -> String {
            match nth {
                nth if nth == self.unreadable() => format!("domain: [{nth}]"),
                nth if nth == self.reserved() => format!("domain: mail.{SYSTEM_DOMAIN}"),
                nth => format!("domain: {}", self.team.domain(&format!("d{nth}"))),
            }
        }

        fn unreadable(&self) -> usize {
            self.count / 2
        }

        fn reserved(&self) -> usize {
            self.count / 3
        }

        async fn create(&self) {
            // The API server enforces the validation that was removed for some moments longer.
            let name = format!("d{}", self.unreadable());
            let spec = format!("tenantRef: {{name: {}}}, {}", self.team.tenant, self.spec(self.unreadable()));
            eventually("the validation is removed", || async {
                self.team.try_apply_with("CustomDomain", &name, "", &spec).await.ok()
            })
            .await;
            stream::iter(0..self.count)
                .for_each_concurrent(REQUESTS, async |nth| {
                    self.team.apply("CustomDomain", &format!("d{nth}"), &self.spec(nth)).await;
                })
                .await;
        }

        async fn delete(&self) {
            stream::iter(self.list().await)
                .for_each_concurrent(REQUESTS, async |object| {
                    let name = object["metadata"]["name"].as_str().expect("a name");
                    self.team.start_deletion(&format!("customdomain/{name}")).await;
                })
                .await;
        }

        async fn assert_conditions(&self) {
            let objects = self.list().await;
            let with_reason = |reason: &str| -> Vec<&Value> {
                objects.iter().filter(|object| condition_reason(object, "Ready") == reason).collect()
            };
            let pending = with_reason("TxtRecordMissing");
            let domains: HashSet<&str> = pending
                .iter()
                .map(|object| object["status"]["domainId"].as_str().expect("a domain"))
                .collect();
            assert_eq!((pending.len(), domains.len()), (self.count - 2, self.count - 2), "a domain each");
            let names = |objects: Vec<&Value>| -> Vec<Value> {
                objects.iter().map(|object| object["metadata"]["name"].clone()).collect()
            };
            assert_eq!(names(with_reason("InvalidSpec")), [format!("d{}", self.unreadable())]);
            assert_eq!(names(with_reason("ReservedDomain")), [format!("d{}", self.reserved())]);
        }

        async fn list(&self) -> Vec<Value> {
            self.team.list("customdomain").await
        }

        /// Domains of the objects whose records were checked and are missing.
        async fn checked_domains(&self) -> usize {
            self.rows(
                "SELECT count(*) FROM domain d JOIN resource r ON r.row_id = d.id
              WHERE r.namespace = $1 AND d.removed_at IS NULL AND d.txt_result = 'missing'",
                self.team.namespace.name(),
            )
            .await
        }

        async fn recorded_objects(&self) -> usize {
            self.rows("SELECT count(*) FROM resource WHERE namespace = $1", self.team.namespace.name()).await
        }

        /// Domains of the tenant.
        async fn domains(&self) -> usize {
            let domains = "SELECT count(*) FROM domain d JOIN tenant t ON t.id = d.tenant
                        WHERE t.name = $1 AND d.removed_at IS NULL";
            self.rows(domains, &self.team.tenant).await
        }

        async fn rows(&self, statement: &'static str, parameter: &str) -> usize {
            let count: i64 = sqlx::query_scalar(statement)
                .bind(parameter)
                .fetch_one(&self.installation.app.pool)
                .await
                .expect("Postgres answers");
            usize::try_from(count).expect("a count")
        }
    }
}
