//! What the operator wrote to the database, and rows that a test changes without the operator.

use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgPool};
use uuid::Uuid;

use super::installation::Installation;
use super::team::Team;

/// One row of a statement with a text parameter.
async fn one<T>(pool: &PgPool, statement: &'static str, parameter: &str) -> T
where
    T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
{
    sqlx::query_as(statement).bind(parameter).fetch_one(pool).await.expect("Postgres answers")
}

/// Changes the one row of a text parameter.
async fn change(pool: &PgPool, statement: &'static str, parameter: &str) {
    let changed = sqlx::query(statement).bind(parameter).execute(pool).await;
    assert_eq!(changed.expect("Postgres answers").rows_affected(), 1, "{statement}");
}

/// Reading.
impl<C> Installation<C> {
    /// The limit of a tenant's custom domains, by the tenant's name.
    pub async fn domain_limit(&self, tenant: &str) -> i32 {
        let (limit,) = one(&self.pool(), "SELECT domain_limit FROM tenant WHERE name = $1", tenant).await;
        limit
    }

    /// Whether there is a tenant of this name.
    pub async fn tenant_exists(&self, name: &str) -> bool {
        let (exists,) = one(&self.pool(), "SELECT EXISTS (SELECT FROM tenant WHERE name = $1)", name).await;
        exists
    }

    /// Whether there is a domain of this name that is not removed.
    pub async fn domain_exists(&self, name: &str) -> bool {
        self.domain_manager(name).await.is_some()
    }

    /// Who manages a domain (`api`, `kubernetes`); `None` where there is none.
    pub async fn domain_manager(&self, name: &str) -> Option<String> {
        let statement = "SELECT min(managed_by) FROM domain WHERE name = $1 AND removed_at IS NULL";
        let (manager,) = one(&self.pool(), statement, name).await;
        manager
    }

    /// Whether a system domain has shared inboxes.
    pub async fn has_shared_inboxes(&self, domain: &str) -> bool {
        let (shared,) = one(&self.pool(), "SELECT shared_inboxes FROM domain WHERE name = $1", domain).await;
        shared
    }

    /// How many tokens that are not revoked and how many webhooks the team's tenant has.
    pub async fn tokens_and_webhooks(&self, team: &Team) -> (i64, i64) {
        let statement =
            "SELECT (SELECT count(*) FROM api_token k WHERE k.tenant = t.id AND k.revoked_at IS NULL),
                                (SELECT count(*) FROM webhook w WHERE w.tenant = t.id)
                           FROM tenant t WHERE t.name = $1";
        one(&self.pool(), statement, &team.tenant).await
    }

    /// The same, counting only active ones: their Secrets are written.
    pub async fn active_tokens_and_webhooks(&self, team: &Team) -> (i64, i64) {
        let statement = "SELECT (SELECT count(*) FROM api_token k WHERE k.tenant = t.id AND k.active),
                                (SELECT count(*) FROM webhook w WHERE w.tenant = t.id AND w.active)
                           FROM tenant t WHERE t.name = $1";
        one(&self.pool(), statement, &team.tenant).await
    }

    /// How many messages a tenant, by its id, has and can be shown.
    pub async fn visible_messages(&self, tenant: &str) -> i64 {
        let statement = "SELECT count(*) FROM visible_message WHERE tenant = $1::uuid";
        let (count,) = one(&self.pool(), statement, tenant).await;
        count
    }

    /// The status of a webhook; `None` where there is none.
    pub async fn webhook_status(&self, id: &str) -> Option<String> {
        let (status,) = one(&self.pool(), "SELECT min(status) FROM webhook WHERE id = $1::uuid", id).await;
        status
    }

    /// Whether the object of this name is recorded as missing; `None` where no such object is recorded.
    pub async fn is_recorded_missing(&self, name: &str) -> Option<bool> {
        let statement = "SELECT bool_and(missing_since IS NOT NULL) FROM resource WHERE name = $1";
        let (missing,) = one(&self.pool(), statement, name).await;
        missing
    }

    /// How many objects of a namespace are recorded.
    pub async fn recorded_objects(&self, namespace: &str) -> i64 {
        let (count,) =
            one(&self.pool(), "SELECT count(*) FROM resource WHERE namespace = $1", namespace).await;
        count
    }
}

/// Changing rows without the operator.
impl<C> Installation<C> {
    /// A verified custom domain of the team's tenant that no object declares.
    ///
    /// # Panics
    /// The name is taken.
    pub async fn insert_verified_domain(&self, team: &Team, name: &str) {
        let tenant = team.tenant_id().await.parse().expect("an id is a UUID");
        crate::rows::insert_custom_domain(&self.pool(), &self.app.clock, tenant, name).await;
    }

    /// Takes a verified domain out of service, as lost records do.
    ///
    /// # Panics
    /// There is no such domain.
    pub async fn stop_serving_domain(&self, name: &str) {
        let statement = "UPDATE domain SET serves = false, verify_status = 'pending' WHERE name = $1";
        change(&self.pool(), statement, name).await;
    }

    /// Puts a domain back into service.
    ///
    /// # Panics
    /// There is no such domain.
    pub async fn serve_domain(&self, name: &str) {
        let statement = "UPDATE domain SET serves = true, verify_status = 'verified' WHERE name = $1";
        change(&self.pool(), statement, name).await;
    }

    /// Deletes the row of a token.
    ///
    /// # Panics
    /// There is none.
    pub async fn delete_token_row(&self, id: &str) {
        change(&self.pool(), "DELETE FROM api_token WHERE id = $1::uuid", id).await;
    }

    /// Deletes the row of a webhook.
    ///
    /// # Panics
    /// There is none.
    pub async fn delete_webhook_row(&self, id: &str) {
        change(&self.pool(), "DELETE FROM webhook WHERE id = $1::uuid", id).await;
    }

    /// Disables a webhook, as its tenth failure in a row does.
    ///
    /// # Panics
    /// There is none.
    pub async fn disable_webhook(&self, id: &str) {
        let statement = "UPDATE webhook SET status = 'disabled', failure_count = 10 WHERE id = $1::uuid";
        change(&self.pool(), statement, id).await;
    }

    /// Makes a webhook inactive, as it is while its Secret is not written yet.
    ///
    /// # Panics
    /// There is none.
    pub async fn deactivate_webhook(&self, id: &str) {
        change(&self.pool(), "UPDATE webhook SET active = false WHERE id = $1::uuid", id).await;
    }

    /// Removes a mailbox, as the worker does.
    ///
    /// # Panics
    /// There is none.
    pub async fn remove_mailbox(&self, id: &str) {
        change(&self.pool(), "SELECT remove_mailbox($1::uuid, 'kubernetes', now(), 30)", id).await;
    }

    /// Makes a cluster's operator look as if it was last seen more than 10 minutes ago.
    ///
    /// # Panics
    /// No operator of the cluster ever led.
    pub async fn age_heartbeat(&self, cluster: &str) {
        let statement =
            "UPDATE cluster SET heartbeat_at = heartbeat_at - interval '11 minutes' WHERE id = $1::uuid";
        change(&self.pool(), statement, cluster).await;
    }

    /// Records the object of this name as missing for years.
    ///
    /// # Panics
    /// No such object is recorded.
    pub async fn record_missing(&self, name: &str) {
        change(&self.pool(), "UPDATE resource SET missing_since = '2020-01-01' WHERE name = $1", name).await;
    }

    /// A tenant that was removed, and whose row is still there: something that it had is not purged yet.
    pub async fn insert_removed_tenant(&self, name: &str) -> Uuid {
        let removed = self.unmanaged_tenant(name).await.id;
        let statements = [
            "INSERT INTO domain (id, name, tenant, serves, shared_inboxes, verify_status, verify_token, created_at, deadline)
             VALUES (gen_random_uuid(), $1::uuid || '.example', $1, false, false, 'pending', $1::text, now(), now())",
            "SELECT remove_tenant($1, now(), 1)",
            "UPDATE domain SET removed_at = NULL WHERE tenant = $1",
        ];
        for statement in statements {
            sqlx::query(statement).bind(removed).execute(&self.pool()).await.expect("Postgres answers");
        }
        removed
    }
}
