//! Rows whose objects were deleted without the operator: their finalizers were removed by hand.

mod successor;

use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_tests::kubernetes::{Cluster, Installation, Team};
use tempmail_tests::wait::eventually;

/// Waits until the object of this name is recorded as missing.
async fn wait_until_recorded_missing<C>(installation: &Installation<C>, name: &str) {
    eventually(&format!("{name} is recorded as missing"), || async {
        (installation.is_recorded_missing(name).await == Some(true)).then_some(())
    })
    .await;
}

/// Domains of a team, and another team, whose objects are deleted without the operator.
struct MissingObjects {
    installation: Installation<Cluster>,
    team: Team,
    /// The team whose Tenant is deleted.
    gone: Team,
    /// A token of that tenant.
    pro: String,
}

impl MissingObjects {
    /// Declares the objects.
    async fn start() -> Self {
        let installation = Installation::exclusive().await;
        let team = Team::new(&installation.cluster).await;
        let gone = Team::new(&installation.cluster).await;
        let policies = [("goes", "Delete"), ("stays", "Retain"), ("lives", "Delete"), ("later", "Delete")];
        for (name, policy) in policies {
            let spec = format!("domain: {}, deletionPolicy: {policy}", team.domain(name));
            team.apply("CustomDomain", name, &spec).await;
            team.wait_for_condition(&format!("customdomain/{name}"), "Accepted").await;
        }
        let pro = installation.token(&gone.tenant_id().await, TokenKind::Pro).await;
        Self { installation, team, gone, pro }
    }

    /// Names of the objects that are deleted first.
    fn deleted(&self) -> [&str; 3] {
        ["goes", "stays", &self.gone.tenant]
    }

    /// Deletes the objects while no operator runs, and waits until the next one has recorded that.
    async fn delete_objects(&mut self) {
        self.installation.app.stop_operator().await;
        self.team.delete_without_finalizers("customdomain/goes").await;
        self.team.delete_without_finalizers("customdomain/stays").await;
        self.gone.delete_without_finalizers(&self.gone.tenant_object()).await;
        // This one was missing, and is back.
        self.installation.record_missing("lives").await;
        self.installation.start_operator();
        for name in self.deleted() {
            wait_until_recorded_missing(&self.installation, name).await;
        }
        eventually("an object that is back is not missing", || async {
            (self.installation.is_recorded_missing("lives").await == Some(false)).then_some(())
        })
        .await;
    }

    /// Asserts that the rows are kept for 23 hours; another object is deleted at their end.
    async fn assert_kept_for_23_hours(&mut self) {
        self.installation.app.stop_operator().await;
        self.team.delete_without_finalizers("customdomain/later").await;
        self.installation.app.advance_hours(23);
        self.installation.start_operator();
        wait_until_recorded_missing(&self.installation, "later").await;
        for name in self.deleted() {
            assert_eq!(self.installation.is_recorded_missing(name).await, Some(true), "{name}");
        }
        self.installation.get_as_pro(&self.pro, "/pro/api/domains").await.expect(200);
    }

    /// Asserts that the rows are released after 25 hours, by their deletion policies.
    async fn assert_released_after_25_hours(&mut self) {
        self.installation.app.stop_operator().await;
        self.installation.app.advance_hours(2);
        self.installation.start_operator();
        for name in self.deleted() {
            eventually(&format!("{name} is released"), || async {
                self.installation.is_recorded_missing(name).await.is_none().then_some(())
            })
            .await;
        }
        for (label, manager) in [
            ("goes", None),
            ("stays", Some("api")),
            ("lives", Some("kubernetes")),
            ("later", Some("kubernetes")),
        ] {
            let domain = self.team.domain(label);
            assert_eq!(self.installation.domain_manager(&domain).await.as_deref(), manager, "{label}");
        }
        let domains = self.installation.request(Method::GET, "/pro/api/domains").bearer(&self.pro);
        domains.send().await.assert_api_error(403, "account_disabled");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_row_of_a_missing_object_for_a_day_and_then_releases_it() {
    let mut missing = MissingObjects::start().await;
    missing.delete_objects().await;
    missing.assert_kept_for_23_hours().await;
    missing.assert_released_after_25_hours().await;
}
