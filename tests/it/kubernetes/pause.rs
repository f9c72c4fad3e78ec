//! The annotation `tempmail.dev/paused`.

use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{Team, assert_conditions, condition, condition_reason};

const OBJECT: &str = "customdomain/ours";
const PAUSED: &str = "tempmail.dev/paused";

#[tokio::test(flavor = "multi_thread")]
async fn does_not_reconcile_a_paused_object_until_it_is_resumed_or_deleted() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let domain = team.domain("mail");
    let metadata = format!("annotations: {{{PAUSED}: 'true'}}");
    let spec = format!("tenantRef: {{name: {}}}, domain: {domain}", team.tenant);
    team.try_apply_with("CustomDomain", "ours", &metadata, &spec).await.expect("the object is accepted");
    let shown = team.wait_for_condition(OBJECT, "ReconciliationPaused").await;
    assert_eq!(condition_reason(&shown, "Ready"), "Pending");
    assert!(shown["metadata"].get("finalizers").is_none(), "{shown}");
    assert!(!installation.domain_exists(&domain).await);

    team.remove_annotation(OBJECT, PAUSED).await;
    let shown = team.wait_for_condition(OBJECT, "Accepted").await;
    assert!(condition(&shown, "ReconciliationPaused").is_none(), "{shown}");
    assert!(installation.domain_exists(&domain).await);

    team.annotate(OBJECT, PAUSED, "true").await;
    let shown = team.wait_for_condition(OBJECT, "ReconciliationPaused").await;
    assert_conditions(&shown, &[("Accepted", "True")]);
    team.delete(OBJECT).await;
    assert!(!installation.domain_exists(&domain).await, "a paused object is finalized");
}
