//! The installation's keys are made once, whoever is first, and never changed.

use std::collections::BTreeMap;
use std::process::Command;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use tempmail_tests::binary::program;
use tempmail_tests::kubernetes::{ApiProxy, OperatorProcess, Team, Verb, World};
use tempmail_tests::port::free_port;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Binary, http};

const NAME: &str = "release-keys";

#[tokio::test(flavor = "multi_thread")]
async fn operators_that_start_at_once_make_one_secret_of_keys_and_keep_it() {
    let world = World::without_operator().await;
    let mut config = world.app.config().clone();
    config.operator.keys_secret = NAME.to_owned();
    config.jwt.keys.clear();
    config.secrets.keys.clear();
    let (proxy, url) = (ApiProxy::start(&world.cluster).await, world.app.database().url());
    // Both find nothing, before either makes one.
    proxy.hold(|request| request.resource == "secrets" && request.verb == Verb::Create);
    let operators = [(); 2].map(|()| OperatorProcess::begin(&config, &url, &proxy.kubeconfig(), &[]));
    eventually("both would make it", async || (proxy.count(Verb::Create) >= 2).then_some(())).await;
    for operator in &operators {
        assert!(!operator.is_ready().await, "it is ready without keys");
    }
    proxy.release();
    for operator in &operators {
        operator.wait_until_ready().await;
    }
    let secrets: Api<Secret> = Api::default_namespaced(world.cluster.client());
    let made = secrets.get(NAME).await.expect("it is made");
    Team::with(&world.cluster, "").await;
    for operator in &operators {
        operator.restart().await;
    }
    Team::with(&world.cluster, "").await;
    let kept = secrets.get(NAME).await.expect("it stays");
    assert_eq!(kept.metadata.resource_version, made.metadata.resource_version);
    let values = made.data.expect("it has entries");
    for operator in &operators {
        let told = values.values().map(|value| String::from_utf8(value.0.clone()).expect("it is text"));
        for line in told {
            let key = line.split('"').max_by_key(|part| part.len()).expect("there is a key");
            assert!(!operator.log().contains(key), "a key is in the log");
        }
    }
    an_api_server_reads(&values, &url).await;
}

/// As a pod mounts them.
async fn an_api_server_reads(values: &BTreeMap<String, ByteString>, url: &str) {
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
