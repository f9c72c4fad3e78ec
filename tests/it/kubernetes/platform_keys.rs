//! The keys of an installation: created once, by the first operator, and never changed.

use std::collections::BTreeMap;
use std::process::Command;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use tempmail_tests::binary::program;
use tempmail_tests::fleet::Role;
use tempmail_tests::kubernetes::{ApiProxy, Installation, OperatorProcess, Team, Verb};
use tempmail_tests::port::free_port;
use tempmail_tests::postgres::Database;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Binary, http};

const NAME: &str = "release-keys";

#[tokio::test(flavor = "multi_thread")]
async fn creates_one_secret_of_keys_however_many_operators_start() {
    let installation = Installation::without_operator().await;
    let mut config = installation.app.config().clone();
    config.operator.keys_secret = NAME.to_owned();
    config.jwt.keys.clear();
    config.secrets.keys.clear();
    // Nothing in it is sealed with other keys.
    let (proxy, database) = (ApiProxy::start(&installation.cluster).await, Database::create().await);
    let url = database.role_url(Role::Operator);
    // Both find no Secret before either creates one.
    proxy.hold(|request| request.resource == "secrets" && request.verb == Verb::Create);
    let operators = [(); 2].map(|()| OperatorProcess::spawn(&config, &url, &proxy.kubeconfig()));
    eventually("both are about to create it", async || (proxy.count(Verb::Create) >= 2).then_some(())).await;
    for operator in &operators {
        assert!(!operator.is_ready().await, "it is ready without keys");
    }
    proxy.release();
    for operator in &operators {
        operator.wait_until_ready().await;
    }
    let secrets: Api<Secret> = Api::default_namespaced(installation.cluster.client());
    let created = secrets.get(NAME).await.expect("it is created");
    Team::new(&installation.cluster).await;
    for operator in &operators {
        operator.restart().await;
    }
    Team::new(&installation.cluster).await;
    let kept = secrets.get(NAME).await.expect("it is there");
    assert_eq!(kept.metadata.resource_version, created.metadata.resource_version);
    let values = created.data.expect("it has entries");
    assert_not_logged(&values, &operators);
    start_api_with(&values, &database.role_url(Role::Api)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_the_keys_while_postgres_is_away() {
    let installation = Installation::without_operator().await;
    let mut config = installation.app.config().clone();
    config.operator.keys_secret = "early-keys".to_owned();
    config.secrets.keys.clear();
    let nobody = format!("postgres://tempmail@{}/tempmail", free_port());
    let operator = OperatorProcess::spawn(&config, &nobody, installation.cluster.kubeconfig());
    let secrets: Api<Secret> = Api::default_namespaced(installation.cluster.client());
    eventually("the keys are created", async || {
        secrets.get_opt("early-keys").await.expect("the API server answers")
    })
    .await;
    assert!(!operator.is_ready().await, "it is ready without Postgres");
}

fn assert_not_logged(values: &BTreeMap<String, ByteString>, operators: &[OperatorProcess]) {
    for value in values.values() {
        let text = String::from_utf8(value.0.clone()).expect("it is text");
        let key = text.split('"').max_by_key(|part| part.len()).expect("there is a key");
        assert!(operators.iter().all(|operator| !operator.log().contains(key)), "a key is in the log");
    }
}

/// Starts `tempmail api` with the keys in files, as a pod mounts them, and returns when it is ready.
async fn start_api_with(values: &BTreeMap<String, ByteString>, url: &str) {
    let directory = tempfile::tempdir().expect("a directory can be made");
    for (name, value) in values {
        std::fs::write(directory.path().join(name), &value.0).expect("a file can be written");
    }
    let admin = free_port();
    let mut command = Command::new(program());
    command.arg("api").env_clear();
    command.env("TEMPMAIL_POSTGRES__URL", url);
    command.env("TEMPMAIL_ADMIN__LISTEN", admin.to_string());
    command.env("TEMPMAIL_HTTP__LISTEN", free_port().to_string());
    command.env("TEMPMAIL_JWT__KEYS_FILE", directory.path().join("jwt.yaml"));
    command.env("TEMPMAIL_SECRETS__KEYS_FILE", directory.path().join("secrets.yaml"));
    let _api = Binary::spawn(command);
    eventually("an API server is ready with these keys", async || {
        let answer = http::client().get(format!("http://{admin}/readyz")).send().await.ok()?;
        answer.status().is_success().then_some(())
    })
    .await;
}
