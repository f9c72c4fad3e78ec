//! Each statement that an operator writes with holds its epoch.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_model::id::new_id;
use tempmail_model::retention::RetentionClass;
use tempmail_model::token::{PlainToken, TokenKind};
use tempmail_store::{
    CustomDomainDeclaration, MailboxDeclaration, NewWebhook, ResourceIdentity, ResourceKind, Store,
    StoreError, SystemDomainDeclaration, TenantDeclaration, TenantLimits, TokenDeclaration,
    WebhookDeclaration,
};
use tempmail_tests::postgres::Database;
use uuid::Uuid;

/// What operators ask without an epoch: the statements that only read, and the one that gives epochs.
const UNFENCED: [&str; 10] = [
    "acquire_epoch",
    "find_resource",
    "list_changed_resources",
    "list_resources",
    "list_predecessors",
    "find_managed_custom_domain",
    "find_managed_mailbox",
    "find_managed_system_domain",
    "find_managed_token",
    "find_managed_webhook",
];

/// Carries out statements of a store under an epoch: the name of each, and why it failed if it did.
macro_rules! carried_out {
    ($store:ident, $epoch:ident, [$($statement:ident($($argument:expr),*)),* $(,)?]) => {
        [$((
            stringify!($statement),
            $store.$statement($epoch, $($argument),*).await.err(),
        )),*]
    };
}

#[tokio::test]
async fn every_statement_of_a_former_leader_is_refused() {
    let database = Database::create().await;
    let store = Store::connect(&database.url(), 1, "tempmail tests").expect("our own URL is one");
    let former = store.acquire_epoch().await.expect("Postgres answers");
    let epoch = store.acquire_epoch().await.expect("Postgres answers");
    let now = SystemClock::default().now();
    let (cluster, uid, id) = (Uuid::new_v4(), Uuid::new_v4(), new_id(now));
    let identity = ResourceIdentity {
        uid,
        kind: ResourceKind::CustomDomain,
        namespace: Some("default".to_owned()),
        name: "ours".to_owned(),
        retained: false,
    };
    // A statement over no row might not come to its epoch.
    store.record_resource(epoch, cluster, &identity).await.expect("it leads");
    let tenant = TenantDeclaration {
        name: "ours",
        adopt: None,
        suspended: false,
        limits: TenantLimits::pro(RetentionClass::PRO),
    };
    let system_domain =
        SystemDomainDeclaration { name: "sys.example", shared_inboxes: true, sort_order: 0, default: false };
    let custom_domain = CustomDomainDeclaration {
        tenant: id,
        name: "mail.example",
        token: "token",
        adopt: false,
        installation_names: &[],
        deadline: now,
        next_check_at: now,
    };
    let webhook = NewWebhook {
        id,
        tenant: id,
        url: "https://hooks.example.com/mail",
        events: &["message.received"],
        secret: b"sealed",
    };
    let webhook = WebhookDeclaration { webhook, rotate_requested: None, reenable_requested: None };
    let plain = PlainToken::generate(TokenKind::Pro).expect("there is randomness");
    let token = TokenDeclaration {
        id,
        tenant: id,
        kind: TokenKind::Pro,
        name: "ours",
        token: &plain,
        expires_at: None,
        rotate_requested: None,
    };
    let mailbox = MailboxDeclaration {
        tenant: id,
        domain: "inbox.localhost",
        local_part: "ours",
        password_hash: "hash",
        adopt: false,
        rotate_requested: None,
    };

    let statements = carried_out!(
        store,
        former,
        [
            check_epoch(),
            record_resource(cluster, &identity),
            record_missing_since(uid, Some(now)),
            declare_tenant(uid, tenant, now),
            release_tenant(uid, false, now, 31),
            declare_system_domain(uid, system_domain, now),
            release_system_domain(uid, now),
            declare_custom_domain(uid, custom_domain, now),
            restart_domain_verification(uid, "now", now, now),
            deactivate_custom_domain(uid),
            release_custom_domain(uid, false, now),
            declare_webhook(uid, webhook, now),
            activate_webhook(uid, id),
            set_webhook_url(uid, "https://hooks.example.com/other"),
            rotate_managed_webhook(uid, b"sealed", "now", now),
            record_reenable_handled(uid, "now"),
            remove_managed_webhook(uid),
            release_webhook(uid),
            declare_token(uid, token, now),
            activate_token(uid, id),
            set_token_expiry(uid, None),
            revoke_managed_token(uid, now),
            release_token(uid, now),
            declare_mailbox(uid, mailbox, now),
            activate_mailbox(uid, "hash"),
            deactivate_mailbox(uid),
            release_mailbox(uid, false, now, 31),
        ]
    );
    let unrefused: Vec<_> =
        statements.iter().filter(|(_, failure)| !matches!(failure, Some(StoreError::Fenced))).collect();
    assert!(unrefused.is_empty(), "{unrefused:#?}");
    store.check_epoch(epoch).await.expect("it leads");

    let mut known: BTreeSet<String> =
        statements.iter().map(|(statement, _)| (*statement).to_owned()).collect();
    known.extend(UNFENCED.map(str::to_owned));
    assert_eq!(known, written_down(), "each statement is tried here, or in UNFENCED");
}

/// The statements that the store has for operators, by the names of their functions.
fn written_down() -> BTreeSet<String> {
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
