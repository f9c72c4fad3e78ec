//! The proxy before the API server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use tempmail_tests::kubernetes::{Fault, Namespace, Verb, When};
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{ApiProxy, Cluster};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::config_map;

/// A namespace, and a proxy with the objects in it as its program sees them.
struct Stage {
    namespace: Namespace,
    proxy: ApiProxy,
    objects: Api<ConfigMap>,
}

impl Stage {
    async fn new() -> Self {
        let cluster = Cluster::shared().await;
        let namespace = cluster.namespace(&[]).await;
        let proxy = ApiProxy::start(cluster).await;
        let objects = Api::namespaced(proxy.client(), namespace.name());
        Self { namespace, proxy, objects }
    }

    async fn create(&self, name: &str) -> kube::Result<ConfigMap> {
        let object = config_map(name);
        within_deadline("an answer", self.objects.create(&PostParams::default(), &object)).await
    }

    /// Whether it is there, as the API server says without the proxy.
    async fn is_there(&self, name: &str) -> bool {
        self.namespace.api::<ConfigMap>().get_opt(name).await.unwrap().is_some()
    }
}

/// Reads a watch until the event of this object.
async fn follow<S>(watch: &mut S, name: &str)
where
    S: Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Unpin,
{
    loop {
        match within_deadline("an event", watch.next()).await.unwrap().unwrap() {
            WatchEvent::Added(object) if object.metadata.name.as_deref() == Some(name) => return,
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_watch_passes_as_it_comes_until_it_is_dropped() {
    let stage = Stage::new().await;
    let watch = stage.objects.watch(&WatchParams::default(), "0").await.unwrap();
    let mut watch = std::pin::pin!(watch);
    stage.create("one").await.unwrap();
    follow(&mut watch, "one").await;
    stage.create("two").await.unwrap();
    follow(&mut watch, "two").await;
    assert_eq!((stage.proxy.count(Verb::Watch), stage.proxy.count(Verb::Create)), (1, 2));

    stage.proxy.drop_watches();
    let end = within_deadline("the end", watch.next()).await;
    assert!(end.is_none_or(|event| event.is_err()), "the connection broke");
    stage.objects.get("one").await.unwrap();
    let again = stage.objects.watch(&WatchParams::default(), "0").await.unwrap();
    follow(&mut std::pin::pin!(again), "two").await;
}

#[tokio::test]
async fn a_watch_that_expires_says_so_and_ends() {
    let stage = Stage::new().await;
    let watch = stage.objects.watch(&WatchParams::default(), "0").await.unwrap();
    let mut watch = std::pin::pin!(watch);
    stage.create("one").await.unwrap();
    follow(&mut watch, "one").await;
    stage.proxy.expire_watches();
    let said = within_deadline("an event", watch.next()).await.unwrap().unwrap();
    let WatchEvent::Error(status) = said else { panic!("{said:?}") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    assert!(within_deadline("the end", watch.next()).await.is_none());
    stage.objects.get("one").await.unwrap();
}

#[tokio::test]
async fn the_nth_write_fails_and_no_other() {
    let stage = Stage::new().await;
    let asked = stage.proxy.asked();
    stage.proxy.fail_write(2, Fault::AlreadyExists);
    stage.create("one").await.unwrap();
    stage.objects.get("one").await.unwrap();
    let refused = stage.create("two").await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.is_already_exists()), "{refused}");
    assert!(!stage.is_there("two").await);
    stage.create("two").await.unwrap();

    let writes = stage.proxy.writes_since(asked);
    assert_eq!(
        writes.iter().map(|write| write.status).collect::<Vec<_>>(),
        [Some(201), Some(409), Some(201)]
    );
    for write in &writes {
        assert_eq!(
            (write.verb, write.resource.as_str(), write.namespace.as_deref(), write.name.as_deref()),
            (Verb::Create, "configmaps", Some(stage.namespace.name()), None)
        );
        assert!(String::from_utf8_lossy(&write.body).contains("blue"));
    }
    assert_eq!(stage.proxy.writes_since(stage.proxy.asked()).len(), 0);
}

#[tokio::test]
async fn a_picked_request_fails_as_an_api_server_fails_it() {
    let stage = Stage::new().await;
    let cases = [
        (Fault::Conflict, 409, "Conflict"),
        (Fault::AlreadyExists, 409, "AlreadyExists"),
        (Fault::Expired, 410, "Expired"),
        (Fault::Invalid, 422, "Invalid"),
        (Fault::Internal, 500, "InternalError"),
    ];
    for (fault, code, reason) in cases {
        stage.proxy.fail_next(|request| request.verb == Verb::List, fault);
        assert!(stage.objects.get_opt("one").await.unwrap().is_none());
        let refused = stage.objects.list(&ListParams::default()).await.unwrap_err();
        let kube::Error::Api(status) = &refused else { panic!("{refused}") };
        assert_eq!((status.code, status.reason.as_str()), (code, reason));
    }
    // kube's client asks again by itself.
    stage.proxy.fail_next(|request| request.verb == Verb::List, Fault::TooManyRequests(1));
    let asked = stage.proxy.asked();
    stage.objects.list(&ListParams::default()).await.unwrap();
    let statuses: Vec<_> = stage.proxy.requests()[asked..].iter().map(|request| request.status).collect();
    assert_eq!(statuses, [Some(429), Some(200)]);
}

#[tokio::test]
async fn leases_are_writes_only_where_that_is_asked_for() {
    let stage = Stage::new().await;
    let leases: Api<Lease> = Api::namespaced(stage.proxy.client(), stage.namespace.name());
    let lease = |name: &str| {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        Lease { metadata, ..Lease::default() }
    };
    stage.proxy.fail_write(1, Fault::Internal);
    leases.create(&PostParams::default(), &lease("one")).await.unwrap();
    assert_eq!(stage.proxy.writes_since(0).len(), 0);
    stage.proxy.count_all_writes();
    leases.create(&PostParams::default(), &lease("two")).await.unwrap_err();
    assert_eq!(stage.proxy.writes_since(0).len(), 2);
}

#[tokio::test]
async fn a_program_is_stopped_before_a_write_or_after_it() {
    for (when, is_there) in [(When::Before, false), (When::After, true)] {
        let stage = Stage::new().await;
        let called = Arc::new(AtomicBool::new(false));
        let calls = Arc::clone(&called);
        let mut reached = stage.proxy.at_write(2, when, move || calls.store(true, Ordering::Relaxed));
        stage.create("one").await.unwrap();
        assert!(!reached.has_come() && !called.load(Ordering::Relaxed));
        assert!(stage.create("two").await.is_err(), "{when:?}: the program hears nothing");
        reached.comes().await;
        assert!(called.load(Ordering::Relaxed));
        assert_eq!(stage.is_there("two").await, is_there, "{when:?}");
        stage.create("three").await.unwrap();
    }
}

#[tokio::test]
async fn nothing_passes_while_the_program_is_being_stopped() {
    let stage = Stage::new().await;
    let (tell, told) = oneshot::channel();
    let (go_on, wait) = oneshot::channel();
    let mut reached = stage.proxy.at_write(1, When::Before, move || {
        tell.send(()).unwrap();
        wait.blocking_recv().unwrap();
    });
    let other: Api<ConfigMap> = Api::namespaced(stage.proxy.client(), stage.namespace.name());
    let meanwhile = async {
        told.await.unwrap();
        let waits = timeout(Duration::from_millis(500), other.get_opt("two")).await;
        go_on.send(()).unwrap();
        waits
    };
    let (first, second) = tokio::join!(stage.create("one"), meanwhile);
    assert!(first.is_err() && second.is_err());
    reached.comes().await;
    other.get_opt("two").await.unwrap();
}

#[tokio::test]
async fn what_is_held_waits() {
    let stage = Stage::new().await;
    stage.proxy.hold(|request| request.is_write());
    let (created, ()) = tokio::join!(stage.create("one"), async {
        eventually("it is asked for", || async { (stage.proxy.asked() == 1).then_some(()) }).await;
        assert!(stage.objects.get_opt("one").await.unwrap().is_none(), "others pass");
        stage.proxy.release();
    });
    created.unwrap();
    assert!(stage.is_there("one").await);
}

#[tokio::test]
async fn a_proxy_that_is_cut_refuses_connections_until_it_is_restored() {
    let stage = Stage::new().await;
    let watch = stage.objects.watch(&WatchParams::default(), "0").await.unwrap();
    let mut watch = std::pin::pin!(watch);
    stage.create("one").await.unwrap();
    follow(&mut watch, "one").await;
    stage.proxy.cut().await;
    assert!(within_deadline("the end", watch.next()).await.is_none_or(|event| event.is_err()));
    assert!(TcpStream::connect(stage.proxy.address()).await.is_err());
    assert!(stage.create("two").await.is_err());
    stage.proxy.restore().await;
    stage.create("two").await.unwrap();
}

#[tokio::test]
async fn a_program_may_do_what_the_user_may_that_its_proxy_is() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    let proxy = ApiProxy::start_as(cluster, "bob", &["system:authenticated"]).await;
    let objects: Api<ConfigMap> = Api::namespaced(proxy.client(), namespace.name());
    let refused = objects.list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains(r#"User "bob" cannot list"#), "{refused}");

    let kubeconfig = proxy.kubeconfig();
    let asked = cluster.kubectl(&["--kubeconfig", kubeconfig.to_str().unwrap(), "auth", "whoami"]).await;
    assert!(asked.unwrap().contains("bob"));
    assert!(proxy.requests().iter().any(|request| request.resource == "selfsubjectreviews"));
}
