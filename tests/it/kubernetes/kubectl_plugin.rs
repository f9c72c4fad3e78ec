//! `kubectl tempmail`.

use tempmail_tests::kubernetes::{KubectlPlugin, Team, unique_name, verification_records};
use tempmail_tests::wait::eventually;
use tempmail_tests::{Cluster, Installation};

#[tokio::test(flavor = "multi_thread")]
async fn prints_the_records_of_a_domain_as_a_table_and_as_a_zone_file() {
    let installation = Installation::shared().await;
    let (team, plugin) = (Team::new(installation.cluster).await, KubectlPlugin::install());
    let (domain, kubeconfig) = (team.domain("mail"), installation.cluster.kubeconfig());
    team.apply("CustomDomain", "mail", &format!("domain: {domain}")).await;
    let shown = team.wait_for_condition("customdomain/mail", "Accepted").await;
    let (token, mx_host) = verification_records(&shown);
    let namespace = team.namespace.name();

    let table = plugin.run(kubeconfig, &format!("records -n {namespace} mail")).await;
    let mut lines = table.success().lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(lines.next().unwrap(), ["CUSTOMDOMAIN", "TYPE", "NAME", "PRIORITY", "VALUE", "RESULT"]);
    let txt = lines.next().unwrap();
    let value = format!("tempmail-verify={token}");
    let object = format!("{namespace}/mail");
    assert_eq!(txt[..4], [object.as_str(), "TXT", &format!("_tempmail.{domain}"), &value]);
    let mx = lines.next().unwrap();
    assert_eq!(mx[..3], [object.as_str(), "MX", &domain]);
    assert_eq!(mx[4], mx_host);

    let zone = plugin.run(kubeconfig, &format!("records --namespace {namespace} -o zone")).await;
    let zone = zone.success();
    assert!(zone.contains(&format!("\n_tempmail.{domain}. 300 IN TXT \"{value}\"\n")), "{zone}");
    assert!(zone.contains(&format!("\n{domain}. 300 IN MX {} {mx_host}.", mx[3])), "{zone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn says_why_objects_are_not_ready() {
    let installation = Installation::shared().await;
    let (team, plugin) = (Team::new(installation.cluster).await, KubectlPlugin::install());
    let (namespace, kubeconfig) = (team.namespace.name(), installation.cluster.kubeconfig());
    let why = format!("why -n {namespace}");
    let nothing = plugin.run(kubeconfig, &why).await;
    assert_eq!(nothing.success(), format!("There are no objects of tempmail in the namespace {namespace}."));

    team.apply_ready("ApiToken", "ci", "type: Live").await;
    let ready = plugin.run(kubeconfig, &why).await;
    assert_eq!(ready.success(), format!("Everything in the namespace {namespace} is ready. Objects: 1."));

    let (name, tenant) = (unique_name("refused"), unique_name("missing"));
    team.apply_object("ApiToken", &name, &format!("tenantRef: {{name: {tenant}}}, type: Live")).await;
    let shown = team.wait_for_reason(&format!("apitoken/{name}"), "Ready", "TenantRefNotPermitted").await;
    let message = shown["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains(&format!("Tenant {tenant} ")) && message.contains(namespace), "{message}");
    let object = format!("apitoken.tempmail.dev/{name}");
    for (arguments, first) in [(why.as_str(), "apitoken.tempmail.dev/"), ("why -A", namespace)] {
        let output = plugin.run(kubeconfig, arguments).await;
        let table = output.success();
        let row = table.lines().find(|line| line.contains(&object));
        let row = row.unwrap_or_else(|| panic!("no row in {table}"));
        assert!(row.starts_with(first) && row.contains("TenantRefNotPermitted"), "{row}");
        assert!(row.ends_with(message), "{row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn explains_what_it_can_not_read() {
    let cluster = Cluster::shared().await;
    let (namespace, plugin) = (cluster.namespace(&[]).await, KubectlPlugin::install());
    let kubeconfig = cluster.kubeconfig();
    let missing = plugin.run(kubeconfig, &format!("records -n {} mail", namespace.name())).await;
    assert_eq!(missing.failure(), "customdomains.tempmail.dev \"mail\" not found");
    let context = plugin.run(kubeconfig, "why --context nowhere").await;
    assert!(context.failure().starts_with("the kubeconfig can't be used: "), "{context:?}");
    let file = plugin.run(kubeconfig, "why --kubeconfig /nowhere").await;
    assert!(file.failure().starts_with("the kubeconfig can't be used: "), "{file:?}");
    let both = plugin.run(kubeconfig, "records mail -A").await;
    assert!(both.usage_error().contains("cannot be used with"), "{both:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_the_missing_kinds_of_a_cluster_without_tempmail() {
    let cluster = Cluster::exclusive().await;
    cluster.delete_definition("customdomains").await;
    let plugin = KubectlPlugin::install();
    let failed = eventually("the kind is gone", || async {
        let output = plugin.run(cluster.kubeconfig(), "records").await;
        (output.code != Some(0)).then_some(output)
    })
    .await;
    assert_eq!(
        failed.failure(),
        "the cluster does not have tempmail's kinds: install the chart tempmail-crds"
    );
}
