//! The proxy before the API server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use tempmail_tests::kubernetes::{ApiFault, Namespace, StopPoint, Verb};
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{ApiProxy, Cluster};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::config_map;

/// A namespace, and a proxy with the objects in it as a program behind the proxy sees them.
struct ProxyFixture {
    namespace: Namespace,
    proxy: ApiProxy,
    objects: Api<ConfigMap>,
}

impl ProxyFixture {
    async fn start() -> Self {
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

    /// Whether the API server has it.
    async fn is_there(&self, name: &str) -> bool {
        self.namespace.api::<ConfigMap>().get_opt(name).await.unwrap().is_some()
    }
}

/// Reads a watch until an object of this name is added.
async fn wait_for_event<S>(watch: &mut S, name: &str)
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

/// The end of a watch. Kubernetes adds a ConfigMap to each namespace at some time, so events may precede it.
async fn end_of<S>(watch: &mut S) -> Option<kube::Result<WatchEvent<ConfigMap>>>
where
    S: Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Unpin,
{
    loop {
        match within_deadline("the end", watch.next()).await {
            Some(Ok(WatchEvent::Added(_) | WatchEvent::Modified(_) | WatchEvent::Bookmark(_))) => {}
            end => return end,
        }
    }
}

#[tokio::test]
async fn forwards_watch_events_until_watches_are_dropped() {
    let fixture = ProxyFixture::start().await;
    let watch = fixture.objects.watch(&WatchParams::default(), "0").await.unwrap();
    let mut watch = std::pin::pin!(watch);
    fixture.create("one").await.unwrap();
    wait_for_event(&mut watch, "one").await;
    fixture.create("two").await.unwrap();
    wait_for_event(&mut watch, "two").await;
    assert_eq!((fixture.proxy.count(Verb::Watch), fixture.proxy.count(Verb::Create)), (1, 2));

    fixture.proxy.drop_watches();
    assert!(end_of(&mut watch).await.is_none_or(|event| event.is_err()), "the connection broke");
    fixture.objects.get("one").await.unwrap();
    let again = fixture.objects.watch(&WatchParams::default(), "0").await.unwrap();
    wait_for_event(&mut std::pin::pin!(again), "two").await;
}

#[tokio::test]
async fn ends_an_expired_watch_with_an_error_event() {
    let fixture = ProxyFixture::start().await;
    let watch = fixture.objects.watch(&WatchParams::default(), "0").await.unwrap();
    let mut watch = std::pin::pin!(watch);
    fixture.create("one").await.unwrap();
    wait_for_event(&mut watch, "one").await;
    fixture.proxy.expire_watches();
    let event = end_of(&mut watch).await.unwrap().unwrap();
    let WatchEvent::Error(status) = event else { panic!("{event:?}") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    assert!(within_deadline("the end", watch.next()).await.is_none());
    fixture.objects.get("one").await.unwrap();
}

#[tokio::test]
async fn fails_only_the_nth_write() {
    let fixture = ProxyFixture::start().await;
    let before = fixture.proxy.request_count();
    fixture.proxy.fail_write(2, ApiFault::AlreadyExists);
    fixture.create("one").await.unwrap();
    fixture.objects.get("one").await.unwrap();
    let refused = fixture.create("two").await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.is_already_exists()), "{refused}");
    assert!(!fixture.is_there("two").await);
    fixture.create("two").await.unwrap();

    let writes = fixture.proxy.writes_since(before);
    assert_eq!(
        writes.iter().map(|write| write.status).collect::<Vec<_>>(),
        [Some(201), Some(409), Some(201)]
    );
    for write in &writes {
        assert_eq!(
            (write.verb, write.resource.as_str(), write.namespace.as_deref(), write.name.as_deref()),
            (Verb::Create, "configmaps", Some(fixture.namespace.name()), None)
        );
        assert!(String::from_utf8_lossy(&write.body).contains("blue"));
    }
    assert_eq!(fixture.proxy.writes_since(fixture.proxy.request_count()).len(), 0);
}

#[tokio::test]
async fn fails_a_matching_request_as_an_api_server_does() {
    let fixture = ProxyFixture::start().await;
    let cases = [
        (ApiFault::Conflict, 409, "Conflict"),
        (ApiFault::AlreadyExists, 409, "AlreadyExists"),
        (ApiFault::Expired, 410, "Expired"),
        (ApiFault::Invalid, 422, "Invalid"),
        (ApiFault::Internal, 500, "InternalError"),
    ];
    for (fault, code, reason) in cases {
        fixture.proxy.fail_next(|request| request.verb == Verb::List, fault);
        assert!(fixture.objects.get_opt("one").await.unwrap().is_none());
        let refused = fixture.objects.list(&ListParams::default()).await.unwrap_err();
        let kube::Error::Api(status) = &refused else { panic!("{refused}") };
        assert_eq!((status.code, status.reason.as_str()), (code, reason));
    }
    // The client of kube retries by itself.
    fixture.proxy.fail_next(|request| request.verb == Verb::List, ApiFault::TooManyRequests(1));
    let before = fixture.proxy.request_count();
    fixture.objects.list(&ListParams::default()).await.unwrap();
    let statuses: Vec<_> = fixture.proxy.requests()[before..].iter().map(|request| request.status).collect();
    assert_eq!(statuses, [Some(429), Some(200)]);
}

#[tokio::test]
async fn counts_leases_as_writes_only_on_request() {
    let fixture = ProxyFixture::start().await;
    let leases: Api<Lease> = Api::namespaced(fixture.proxy.client(), fixture.namespace.name());
    let lease = |name: &str| {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        Lease { metadata, ..Lease::default() }
    };
    fixture.proxy.fail_write(1, ApiFault::Internal);
    leases.create(&PostParams::default(), &lease("one")).await.unwrap();
    assert_eq!(fixture.proxy.writes_since(0).len(), 0);
    fixture.proxy.count_all_writes();
    leases.create(&PostParams::default(), &lease("two")).await.unwrap_err();
    assert_eq!(fixture.proxy.writes_since(0).len(), 2);
}

#[tokio::test]
async fn stops_a_program_before_or_after_a_write() {
    for (point, is_there) in [(StopPoint::BeforeWrite, false), (StopPoint::AfterWrite, true)] {
        let fixture = ProxyFixture::start().await;
        let called = Arc::new(AtomicBool::new(false));
        let calls = Arc::clone(&called);
        let mut reached = fixture.proxy.stop_at_write(2, point, move || calls.store(true, Ordering::Relaxed));
        fixture.create("one").await.unwrap();
        assert!(!reached.is_reached() && !called.load(Ordering::Relaxed));
        assert!(fixture.create("two").await.is_err(), "{point:?}: the program gets an answer");
        reached.wait().await;
        assert!(called.load(Ordering::Relaxed));
        assert_eq!(fixture.is_there("two").await, is_there, "{point:?}");
        fixture.create("three").await.unwrap();
    }
}

#[tokio::test]
async fn forwards_nothing_while_a_program_is_stopped() {
    let fixture = ProxyFixture::start().await;
    let (reach, reached_call) = oneshot::channel();
    let (resume, resumed) = oneshot::channel();
    let mut reached = fixture.proxy.stop_at_write(1, StopPoint::BeforeWrite, move || {
        reach.send(()).unwrap();
        resumed.blocking_recv().unwrap();
    });
    let other: Api<ConfigMap> = Api::namespaced(fixture.proxy.client(), fixture.namespace.name());
    let meanwhile = async {
        reached_call.await.unwrap();
        let blocked = timeout(Duration::from_millis(500), other.get_opt("two")).await;
        resume.send(()).unwrap();
        blocked
    };
    let (first, second) = tokio::join!(fixture.create("one"), meanwhile);
    assert!(first.is_err() && second.is_err());
    reached.wait().await;
    other.get_opt("two").await.unwrap();
}

#[tokio::test]
async fn holds_matching_requests_until_they_are_released() {
    let fixture = ProxyFixture::start().await;
    fixture.proxy.hold(|request| request.is_write());
    let (created, ()) = tokio::join!(fixture.create("one"), async {
        eventually("the request is held", || async { (fixture.proxy.request_count() == 1).then_some(()) })
            .await;
        assert!(fixture.objects.get_opt("one").await.unwrap().is_none(), "other requests pass");
        fixture.proxy.release();
    });
    created.unwrap();
    assert!(fixture.is_there("one").await);
}

#[tokio::test]
async fn refuses_connections_until_it_is_restored() {
    let fixture = ProxyFixture::start().await;
    let watch = fixture.objects.watch(&WatchParams::default(), "0").await.unwrap();
    let mut watch = std::pin::pin!(watch);
    fixture.create("one").await.unwrap();
    wait_for_event(&mut watch, "one").await;
    fixture.proxy.cut().await;
    assert!(end_of(&mut watch).await.is_none_or(|event| event.is_err()));
    assert!(TcpStream::connect(fixture.proxy.address()).await.is_err());
    assert!(fixture.create("two").await.is_err());
    fixture.proxy.restore().await;
    fixture.create("two").await.unwrap();
}

#[tokio::test]
async fn forwards_requests_with_the_rights_of_a_user() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    let proxy = ApiProxy::start_as(cluster, "bob", &["system:authenticated"]).await;
    let objects: Api<ConfigMap> = Api::namespaced(proxy.client(), namespace.name());
    let refused = objects.list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains(r#"User "bob" cannot list"#), "{refused}");

    let kubeconfig = proxy.kubeconfig();
    let user = cluster.kubectl(&["--kubeconfig", kubeconfig.to_str().unwrap(), "auth", "whoami"]).await;
    assert!(user.unwrap().contains("bob"));
    assert!(proxy.requests().iter().any(|request| request.resource == "selfsubjectreviews"));
}
