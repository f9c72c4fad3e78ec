//! A process that starts before Postgres gives connections, as on a machine that is busy.

use std::sync::Arc;

use tempmail::roles::{RoleContext, Roles};
use tempmail_bus::LocalBus;
use tempmail_model::clock::SystemClock;
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tempmail_tests::App;
use tempmail_tests::fleet::Role;
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::wait::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn the_http_interface_waits_until_there_is_a_connection() {
    let (app, proxy) = (App::start().await, PostgresProxy::start().await);
    proxy.cut();
    let url = app.database().role_url_through(Role::Api, Some(proxy.port()));
    let (readiness, shutdown) = (Readiness::default(), Shutdown::new());
    let context = RoleContext {
        config: Arc::new(app.config().clone()),
        bus: Arc::new(LocalBus::new()),
        clock: Arc::new(SystemClock::default()),
        readiness: readiness.clone(),
    };
    let store = Store::connect(&url, 2, "tempmail tests").unwrap();
    let keys = Keys::from_config(app.config()).unwrap();
    let roles = Roles::new(context).with_api(store, keys).await.unwrap();
    let running = tokio::spawn(roles.run(shutdown.clone()));
    // The second one comes after a first attempt that failed.
    eventually("two connections are refused", || async { (proxy.refused_count() > 1).then_some(()) }).await;
    assert!(!running.is_finished() && !readiness.report().is_empty());
    proxy.restore();
    eventually("it serves", || async { readiness.report().is_empty().then_some(()) }).await;
    shutdown.drain.cancel();
    running.await.unwrap().unwrap();
}
