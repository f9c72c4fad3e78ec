//! Every statement that writes for an operator checks the operator's epoch.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_model::id::new_id;
use tempmail_model::retention::RetentionClass;
use tempmail_model::token::{PlainToken, TokenKind};
use tempmail_store::{
    ClusterAdmission, ClusterRelease, CustomDomainDeclaration, Epoch, MailboxDeclaration, NewWebhook,
    ResourceIdentity, Store, StoreError, SystemDomainDeclaration, TenantDeclaration, TenantLimits,
    TokenDeclaration, UsedGrant, WebhookDeclaration,
};
use tempmail_tests::postgres::Database;
use uuid::Uuid;

/// The statements without an epoch: those that only read, those of administrators, and the one that assigns epochs.
const UNFENCED: [&str; 16] = [
    "acquire_epoch",
    "admit_cluster",
    "find_resource",
    "find_row_holder",
    "list_changed_resources",
    "list_clusters",
    "list_resources",
    "list_predecessors",
    "list_used_grants",
    "find_managed_custom_domain",
    "find_managed_mailbox",
    "find_managed_system_domain",
    "find_managed_token",
    "find_managed_webhook",
    "release_cluster",
    "tenant_gives_way",
];

const TENANT: TenantDeclaration<'static> = TenantDeclaration {
    name: "ours",
    adopt: None,
    suspended: false,
    limits: TenantLimits {
        retention: RetentionClass::PRO,
        mailboxes: 1,
        domains: 1,
        webhooks: 1,
        tokens: 1,
        mailbox_bytes: 1,
    },
};

const SYSTEM_DOMAIN: SystemDomainDeclaration<'static> =
    SystemDomainDeclaration { name: "sys.example", shared_inboxes: true, sort_order: 0, default: false };

fn custom_domain(tenant: Uuid, now: Timestamp) -> CustomDomainDeclaration<'static> {
    CustomDomainDeclaration {
        tenant,
        name: "mail.example",
        token: "token",
        adopt: false,
        installation_names: &[],
        deadline: now,
        next_check_at: now,
    }
}

fn webhook(id: Uuid) -> WebhookDeclaration<'static> {
    let url = "https://hooks.example.com/mail";
    let webhook = NewWebhook { id, tenant: id, url, events: &["message.received"], secret: b"sealed" };
    WebhookDeclaration { webhook, rotate_requested: None, reenable_requested: None }
}

fn token(id: Uuid, plain: &PlainToken) -> TokenDeclaration<'_> {
    TokenDeclaration {
        id,
        tenant: id,
        kind: TokenKind::Pro,
        name: "ours",
        token: plain,
        expires_at: None,
        rotate_requested: None,
    }
}

fn mailbox(tenant: Uuid) -> MailboxDeclaration<'static> {
    MailboxDeclaration {
        tenant,
        domain: "inbox.localhost",
        local_part: "ours",
        password_hash: "hash",
        adopt: false,
        rotate_requested: None,
    }
}

/// Runs statements of a store with an epoch: the name of each, and its error.
macro_rules! run_statements {
    ($store:ident, $epoch:ident, [$($statement:ident($($argument:expr),*)),* $(,)?]) => {
        [$((
            stringify!($statement),
            $store.$statement($epoch, $($argument),*).await.err(),
        )),*]
    };
}

async fn acquire_epoch(store: &Store, cluster: Uuid) -> Epoch {
    store.acquire_epoch(cluster).await.expect("Postgres answers").expect("the cluster is not released")
}

#[tokio::test]
async fn rejects_every_write_of_a_former_leader() {
    let database = Database::create().await;
    let store = Store::connect(&database.url(), 1, "tempmail tests").expect("our own URL is one");
    let now = SystemClock::default().now();
    let (cluster, uid, id) = (Uuid::new_v4(), Uuid::new_v4(), new_id(now));
    let former = acquire_epoch(&store, cluster).await;
    let epoch = acquire_epoch(&store, cluster).await;
    let identity = ResourceIdentity {
        uid,
        kind: "CustomDomain".to_owned(),
        namespace: Some("default".to_owned()),
        namespace_uid: None,
        name: "ours".to_owned(),
        retained: false,
    };
    let grant = UsedGrant {
        tenant: id,
        tenant_object: Some(uid),
        tenant_name: Some("ours".to_owned()),
        namespace: "default".to_owned(),
        namespace_uid: None,
    };
    // A statement that finds no row might not check its epoch.
    store.record_resource(epoch, cluster, &identity).await.expect("the epoch is the newest");
    let plain = PlainToken::generate(TokenKind::Pro).expect("the operating system gives randomness");
    let statements = run_statements!(
        store,
        former,
        [
            check_epoch(),
            record_heartbeat(),
            adopt_released(uid, id),
            adopt_released_webhook(uid, id, b"sealed", now),
            record_resource(cluster, &identity),
            record_missing(uid, now),
            record_present(uid),
            end_grant(cluster, &grant, now),
            declare_tenant(uid, TENANT, now),
            release_tenant(uid, false, now, 31),
            declare_system_domain(uid, SYSTEM_DOMAIN, now),
            release_system_domain(uid, now),
            declare_custom_domain(uid, custom_domain(id, now), now),
            restart_domain_verification(uid, "now", now, now),
            deactivate_custom_domain(uid),
            release_custom_domain(uid, false, &[], now),
            declare_webhook(uid, webhook(id), now),
            activate_webhook(uid, id),
            set_webhook_url(uid, "https://hooks.example.com/other"),
            rotate_managed_webhook(uid, b"sealed", "now", now),
            record_reenable_handled(uid, "now"),
            remove_managed_webhook(uid),
            release_webhook(uid),
            declare_token(uid, token(id, &plain), now),
            activate_token(uid, id),
            set_token_expiry(uid, None),
            revoke_managed_token(uid, now),
            release_token(uid, now),
            declare_mailbox(uid, mailbox(id), now),
            activate_mailbox(uid, "hash"),
            deactivate_mailbox(uid),
            release_mailbox(uid, false, &[], now, 31),
        ]
    );
    let accepted: Vec<_> =
        statements.iter().filter(|(_, error)| !matches!(error, Some(StoreError::Fenced))).collect();
    assert!(accepted.is_empty(), "{accepted:#?}");
    store.check_epoch(epoch).await.expect("the epoch is the newest");

    let mut known: BTreeSet<String> =
        statements.iter().map(|(statement, _)| (*statement).to_owned()).collect();
    known.extend(UNFENCED.map(str::to_owned));
    assert_eq!(known, statements_of_the_store(), "each statement is run here, or in UNFENCED");
}

/// The names of the functions that the store has for operators.
fn statements_of_the_store() -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../libs/store/src");
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(source.join("kubernetes")).expect("the folder is there") {
        files.push(entry.expect("the folder can be read").path());
    }
    let mut names = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("source is UTF-8");
        for function in text.split("async fn ").skip(1) {
            let (name, _) = function.split_once('(').expect("a function has arguments");
            names.insert(name.to_owned());
        }
    }
    names
}

#[tokio::test]
async fn operators_of_two_clusters_do_not_end_the_epochs_of_each_other() {
    let database = Database::create().await;
    let store = Store::connect(&database.url(), 1, "tempmail tests").expect("our own URL is one");
    let one = acquire_epoch(&store, Uuid::new_v4()).await;
    let other = acquire_epoch(&store, Uuid::new_v4()).await;
    store.check_epoch(one).await.expect("the first cluster has its leader");
    store.check_epoch(other).await.expect("the second cluster has its leader");
}

#[tokio::test]
async fn a_release_ends_the_epoch_of_the_cluster_and_gives_it_no_other() {
    let database = Database::create().await;
    let store = Store::connect(&database.url(), 1, "tempmail tests").expect("our own URL is one");
    let (now, cluster) = (SystemClock::default().now(), Uuid::new_v4());
    let epoch = acquire_epoch(&store, cluster).await;
    let other = acquire_epoch(&store, Uuid::new_v4()).await;
    let refused = store.release_cluster(cluster, false, now).await.expect("Postgres answers");
    assert!(matches!(refused, ClusterRelease::Alive(_)), "{refused:?}");
    store.check_epoch(epoch).await.expect("nothing was released");
    let released = store.release_cluster(cluster, true, now).await.expect("Postgres answers");
    assert_eq!(released, ClusterRelease::Released(0));
    let fenced = store.check_epoch(epoch).await;
    assert!(matches!(fenced, Err(StoreError::Fenced)), "{fenced:?}");
    assert_eq!(store.acquire_epoch(cluster).await.expect("Postgres answers"), None);
    store.check_epoch(other).await.expect("the other cluster keeps its leader");
    let again = store.release_cluster(cluster, true, now).await.expect("Postgres answers");
    assert_eq!(again, ClusterRelease::AlreadyReleased);
    let admitted = store.admit_cluster(cluster).await.expect("Postgres answers");
    assert_eq!(admitted, ClusterAdmission::Admitted);
    acquire_epoch(&store, cluster).await;
}
