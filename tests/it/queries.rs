//! What the hot paths ask Postgres, over a million mails: one round trip beside the
//! authentication, through an index that fits, reading no more rows than it needs. What is asked
//! is taken from Postgres' own log, so that it is what the program asks and not a copy of it.

mod filled;
mod plan;
mod recording;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::Path;

use futures_util::FutureExt as _;
use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_model::token::TokenKind;
use tempmail_store::{DeliveryAttempt, PendingEvent, RecordOutcome, ScanRange, Store};
use tempmail_tests::app::SYSTEM_DOMAIN;
use tempmail_tests::{SmtpClient, smtp};
use tokio::sync::OnceCell;
use uuid::Uuid;

use filled::{Filled, HOLDER};
use recording::{Recorder, Statement};

/// How often each request is made: Postgres may change its mind about a plan after the fifth time
/// on a connection, and a role has three.
const REPEATED: u8 = 36;
/// Executions on one connection that are enough to see what it settles for.
const SETTLED: usize = 10;

/// A statement of a hot path.
struct Hot {
    /// As its comment says.
    name: &'static str,
    /// The indexes it may use.
    indexes: &'static [&'static str],
    /// Rows it may read, those that it passes over included.
    rows: u64,
}

/// Rows of an answer (30, or 20), one of each partition that is looked at, and a few.
const LIST: u64 = 120;

const HOT: &[Hot] = &[
    Hot { name: "find_token", indexes: &["api_token_hash_key", "tenant_pkey"], rows: 2 },
    Hot { name: "find_token_by_id", indexes: &["api_token_pkey", "tenant_pkey"], rows: 2 },
    Hot { name: "find_mailbox", indexes: &["mailbox_pkey", "domain_pkey", "tenant_pkey"], rows: 3 },
    Hot {
        name: "find_mailbox_to_sign_in",
        indexes: &["domain_serving", "mailbox_address", "tenant_pkey"],
        rows: 3,
    },
    Hot { name: "scan_inbox", indexes: INBOX, rows: LIST },
    Hot {
        name: "clear_inbox",
        // Of what is counted all that it hides is summed, by the inbox.
        indexes: &[
            "domain_serving",
            "mailbox_address",
            "tenant_pkey",
            "stream_pkey",
            "free_class_pkey",
            "message_inbox_seq_idx",
            "usage_pkey",
            PURGE,
        ],
        rows: LIST,
    },
    Hot {
        name: "find_readable_message",
        indexes: &["message_pkey", "raw_pkey", "domain_serving", "mailbox_address", "tenant_pkey", PURGE],
        rows: 7,
    },
    Hot { name: "find_mailbox_message", indexes: &["message_pkey", "raw_pkey", PURGE], rows: 3 },
    Hot { name: "raw_chunk", indexes: &["raw_pkey"], rows: 1 },
    Hot {
        name: "list_mailbox_messages",
        indexes: &["mailbox_pkey", "tenant_pkey", "free_class_pkey", "message_inbox_seq_idx", PURGE],
        rows: LIST,
    },
    Hot {
        name: "mailbox_used",
        indexes: &["usage_pkey", "message_inbox_seq_idx", "message_pkey", PURGE],
        rows: LIST,
    },
    Hot {
        name: "list_tenant_mailboxes",
        indexes: &[
            "mailbox_tenant",
            "domain_pkey",
            "usage_pkey",
            "message_inbox_seq_idx",
            "message_pkey",
            PURGE,
        ],
        rows: 2 * LIST,
    },
    Hot { name: "delete_message", indexes: DELETION, rows: 20 },
    // A BRIN of 32 pages a range: what lies beside it is read, too. For a partition that has just
    // begun any index will do.
    Hot {
        name: "list_arrivals",
        indexes: &["message_seq_idx", "message_pkey", "message_inbox_seq_idx"],
        rows: 10_000,
    },
    Hot { name: "list_messages_by_id", indexes: &["message_pkey", PURGE], rows: 100 },
    Hot { name: "poll_stream", indexes: &["stream_pkey", "change_xid"], rows: 100 },
    Hot {
        name: "scan_mailbox",
        indexes: &[
            "mailbox_pkey",
            "domain_pkey",
            "tenant_pkey",
            "free_class_pkey",
            "message_inbox_seq_idx",
            PURGE,
        ],
        rows: LIST,
    },
    Hot {
        name: "scan_tenant",
        indexes: &[
            "tenant_pkey",
            "domain_serving",
            "mailbox_pkey",
            "domain_pkey",
            "message_tenant_seq_idx",
            PURGE,
        ],
        rows: LIST,
    },
    Hot {
        name: "find_recipients",
        indexes: &[
            "domain_serving",
            "mailbox_address",
            "tenant_pkey",
            "usage_pkey",
            "message_inbox_seq_idx",
            "message_pkey",
            PURGE,
        ],
        rows: LIST,
    },
    Hot {
        name: "accept_mail",
        indexes: &[
            "stream_pkey",
            "domain_serving",
            "mailbox_address",
            "mailbox_pkey",
            "tenant_pkey",
            "usage_pkey",
            "webhook_tenant",
            "message_partition_pkey",
        ],
        rows: 200,
    },
    Hot {
        name: "claim_webhooks",
        indexes: &["webhook_event_pkey", "webhook_pkey", "tenant_pkey"],
        rows: 4 * WAITING_LANES,
    },
    Hot {
        name: "list_pending_events",
        indexes: &[
            "webhook_pkey",
            "tenant_pkey",
            "webhook_event_pkey",
            "message_pkey",
            "mailbox_pkey",
            "domain_pkey",
            PURGE,
        ],
        rows: 100,
    },
    Hot { name: "record_deliveries", indexes: &["webhook_pkey", "webhook_event_pkey"], rows: 40 },
    Hot { name: "renew_webhook_leases", indexes: &["webhook_pkey"], rows: 1 },
    Hot { name: "release_webhook_lease", indexes: &["webhook_pkey"], rows: 1 },
    Hot { name: "webhook_backlog", indexes: &["webhook_event_pkey"], rows: WAITING_LANES },
];

/// Webhooks with waiting events, and a few.
const WAITING_LANES: u64 = filled::LANES as u64 + 10;

/// Finds what hides a message.
const PURGE: &str = "purge_inbox_owner_address_up_to_seq_owner_removed_key";

const INBOX: &[&str] = &[
    "domain_serving",
    "mailbox_address",
    "tenant_pkey",
    "stream_pkey",
    "free_class_pkey",
    "message_inbox_seq_idx",
    PURGE,
];

const DELETION: &[&str] = &["message_pkey", "raw_pkey", "usage_pkey", "message_partition_pkey", PURGE];

/// Statements of upkeep, of starts, and of what a client does now and then.
const COLD: &[&str] = &[
    "acquire_epoch",
    "check_epoch",
    "find_resource",
    "record_resource",
    "list_changed_resources",
    "list_resources",
    "list_predecessors",
    "record_missing_since",
    "find_tenant_by_id",
    "declare_tenant",
    "release_tenant",
    "activate_token",
    "activate_webhook",
    "declare_token",
    "declare_webhook",
    "record_reenable_handled",
    "find_managed_token",
    "find_managed_webhook",
    "release_token",
    "release_webhook",
    "rotate_managed_webhook",
    "set_token_expiry",
    "set_webhook_url",
    "revoke_managed_token",
    "remove_managed_webhook",
    "find_managed_custom_domain",
    "declare_custom_domain",
    "restart_domain_verification",
    "deactivate_custom_domain",
    "release_custom_domain",
    "preflight_delivery",
    "store_raw",
    "discard_raw",
    "expire_usage",
    "delete_events",
    "release_webhook_leases",
    "delete_stale_events",
    "ensure_delivery_partition",
    "drop_delivery_partitions",
    "activate_mailbox",
    "add_system_domain",
    "request_domain_check",
    "change_system_domain",
    "change_tenant",
    "claim_due_domains",
    "clock_offset",
    "count_due_domains",
    "count_partitions",
    "create_custom_domain",
    "create_mailbox",
    "declare_mailbox",
    "declare_system_domain",
    "create_tenant",
    "create_token",
    "create_webhook",
    "default_system_domain",
    "delete_ended_tokens",
    "delete_released_mailboxes",
    "delete_removed_domains",
    "delete_removed_tenants",
    "delete_old_changes",
    "delete_webhook",
    "detach_message_partition",
    "drop_detached_partitions",
    "ensure_message_partition",
    "ensure_tenant",
    "fail_custom_domain",
    "find_custom_domain",
    "find_domain_to_check",
    "find_managed_mailbox",
    "find_managed_system_domain",
    "find_serving_domain",
    "find_tenant",
    "find_tenant_mailbox",
    "delete_expired_usage",
    "insert_token",
    "list_custom_domains",
    "list_expired_partitions",
    "list_mailbox_addresses",
    "list_missing_partitions",
    "list_purges",
    "filter_visible_messages",
    "list_shared_domains",
    "list_system_domain_usage",
    "list_system_domains",
    "list_tenants",
    "list_tokens",
    "list_webhook_deliveries",
    "list_webhooks",
    "list_active_classes",
    "mark_message_read",
    "migrate",
    "purge_batch",
    "record_domain_check",
    "record_free_class",
    "release_mailbox",
    "release_system_domain",
    "remove_custom_domain",
    "remove_idle_mailboxes",
    "remove_mailbox",
    "remove_system_domain",
    "remove_tenant",
    "reset_mailbox_password",
    "revoke_token",
    "rotate_webhook_secret",
    "schema_version",
    "set_default_system_domain",
    "shared_inbox_usage",
    "store_usage",
    "stream_id",
    "set_tenant_suspended",
    "touch_mailbox",
    "touch_token",
    "verify_custom_domain",
    "deactivate_mailbox",
];

/// Tables of so few rows that there is nothing to look for in them.
const TINY: &[&str] = &["free_class", "stream", "message_partition"];

/// What loops send while requests are made, and what is written off a request's path.
const BESIDE: &[&str] = &[
    "claim_webhooks",
    "drop_delivery_partitions",
    "ensure_delivery_partition",
    "delete_stale_events",
    "renew_webhook_leases",
    "list_pending_events",
    "record_deliveries",
    "release_webhook_lease",
    "webhook_backlog",
    "count_partitions",
    "default_system_domain",
    "list_arrivals",
    "list_expired_partitions",
    "list_mailbox_addresses",
    "list_missing_partitions",
    "list_purges",
    "list_shared_domains",
    "list_active_classes",
    "purge_batch",
    "remove_idle_mailboxes",
    "delete_released_mailboxes",
    "delete_ended_tokens",
    "delete_removed_domains",
    "delete_removed_tenants",
    "count_due_domains",
    "claim_due_domains",
    "drop_detached_partitions",
    "store_usage",
    "poll_stream",
    "touch_mailbox",
    "touch_token",
];

/// What one kind of request sent.
#[derive(Debug)]
struct Recorded {
    request: &'static str,
    /// What each of the requests is to send, one round trip a statement.
    expected: &'static [&'static str],
    statements: Vec<Statement>,
}

/// Authentication one, the read one; a mail that is not whole with the first 32 KiB of its
/// compressed data takes one more for each further 128 KiB.
#[tokio::test(flavor = "multi_thread")]
async fn a_hot_request_takes_one_round_trip_beside_its_authentication() {
    for recorded in recording().await {
        let sent: Vec<&str> = recorded.statements.iter().map(|statement| statement.name.as_str()).collect();
        let mut wrong = sent.chunks(recorded.expected.len()).filter(|sent| *sent != recorded.expected);
        assert_eq!(wrong.next(), None, "{} is to send {:?}", recorded.request, recorded.expected);
        assert_eq!(sent.len(), recorded.expected.len() * usize::from(REPEATED), "{}", recorded.request);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hot_statements_look_for_rows_by_an_index_that_fits() {
    for (hot, statement) in hot_statements().await {
        for scan in statement.plans.iter().flat_map(plan::scans) {
            if TINY.contains(&scan.table.as_str()) {
                continue;
            }
            let fits = scan.index.as_deref().is_some_and(|index| hot.indexes.contains(&index));
            assert!(fits && scan.bounded, "{} does {scan:?}: {:#?}", hot.name, statement.plans);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hot_statements_read_no_more_rows_than_they_need() {
    for (hot, statement) in hot_statements().await {
        let rows: u64 = statement.plans.iter().map(plan::rows_read).sum();
        assert!(rows <= hot.rows, "{} read {rows} rows: {:#?}", hot.name, statement.plans);
    }
}

/// The first plans of a connection are made for their values, the later ones may be for all.
#[tokio::test(flavor = "multi_thread")]
async fn every_hot_statement_was_seen_often_enough_on_one_connection() {
    let mut executions: BTreeMap<&str, BTreeMap<u32, usize>> = BTreeMap::new();
    for (hot, statement) in hot_statements().await {
        *executions.entry(hot.name).or_default().entry(statement.process).or_default() += 1;
    }
    for hot in HOT {
        let most = executions.get(hot.name).and_then(|processes| processes.values().max());
        assert!(most >= Some(&SETTLED), "{} was executed {most:?} times on one connection", hot.name);
    }
}

/// A statement that is new has to be named as hot, with its indexes and a request here that
/// sends it, or as cold.
#[test]
fn every_statement_of_the_store_is_hot_or_cold() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../libs/store/src");
    let mut named = BTreeSet::new();
    collect_names(&source, &mut named);
    let hot: BTreeSet<String> = HOT.iter().map(|hot| hot.name.to_owned()).collect();
    let cold: BTreeSet<String> = COLD.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(hot.intersection(&cold).next(), None, "a statement is hot or cold");
    let known: BTreeSet<String> = hot.union(&cold).cloned().collect();
    assert_eq!(named.difference(&known).collect::<Vec<_>>(), [""; 0], "say in HOT or COLD what they are");
    assert_eq!(known.difference(&named).collect::<Vec<_>>(), [""; 0], "the store has no such statement");
}

fn collect_names(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_names(&path, names);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("/* ") {
            let comment = text[at + 3..].split(" */").next().unwrap_or_default();
            let is_name = |octet: u8| octet.is_ascii_lowercase() || octet == b'_' || octet.is_ascii_digit();
            // `lease` marks where a statement may ask the server for the time.
            if comment != "lease" && comment.bytes().all(is_name) {
                names.insert(comment.to_owned());
            }
        }
    }
}

/// Every execution of a hot statement.
async fn hot_statements() -> Vec<(&'static Hot, &'static Statement)> {
    let statements = recording().await.iter().flat_map(|recorded| &recorded.statements);
    let of = |statement: &Statement| HOT.iter().find(|hot| hot.name == statement.name);
    statements.filter_map(|statement| Some((of(statement)?, statement))).collect()
}

/// All requests, made once for all tests.
async fn recording() -> &'static [Recorded] {
    static RECORDING: OnceCell<Option<Vec<Recorded>>> = OnceCell::const_new();
    // What fails is not tried again by the other tests.
    let recorded =
        RECORDING.get_or_init(|| async { AssertUnwindSafe(record()).catch_unwind().await.ok() }).await;
    recorded.as_deref().expect("the requests are made")
}

async fn record() -> Vec<Recorded> {
    let filled = Filled::start().await;
    let mut session = Session {
        recorder: Recorder::start(filled.app.database()).await,
        recorded: Vec::new(),
        process: None,
    };
    record_token_api(&filled, &mut session).await;
    record_mailbox_api(&filled, &mut session).await;
    record_pro_api(&filled, &mut session).await;
    record_mail(&filled, &mut session).await;
    record_loops(&filled, &mut session).await;
    record_webhooks(&filled, &mut session).await;
    session.recorded
}

struct Session<'a> {
    recorder: Recorder<'a>,
    recorded: Vec<Recorded>,
    /// The one connection that counts; `None`: those of the roles.
    process: Option<u32>,
}

impl Session<'_> {
    /// Makes a kind of request so often, each after the one before, and keeps what it sent.
    async fn record<F: Future<Output = ()>>(
        &mut self,
        request: &'static str,
        expected: &'static [&'static str],
        mut make: impl FnMut(usize) -> F,
    ) {
        self.recorder.take().await;
        for number in 0..usize::from(REPEATED) {
            make(number).await;
        }
        let beside = |name: &str| BESIDE.contains(&name) && !expected.contains(&name);
        let mut statements = without(beside, self.recorder.take().await);
        statements.retain(|statement| self.process.is_none_or(|process| statement.process == process));
        self.recorded.push(Recorded { request, expected, statements });
    }
}

/// Leaves out what is sent beside, with the beginnings and ends of its transactions.
fn without(beside: impl Fn(&str) -> bool, statements: Vec<Statement>) -> Vec<Statement> {
    let mut kept = Vec::new();
    let (mut begun, mut open) = (BTreeMap::new(), BTreeSet::new());
    for statement in statements {
        let process = statement.process;
        match statement.name.as_str() {
            "BEGIN" => {
                begun.insert(process, statement);
            }
            "COMMIT" | "ROLLBACK" => kept.extend(open.remove(&process).then_some(statement)),
            name if beside(name) => {
                begun.remove(&process);
            }
            _ => {
                if let Some(begin) = begun.remove(&process) {
                    open.insert(process);
                    kept.push(begin);
                }
                kept.push(statement);
            }
        }
    }
    kept
}

async fn record_token_api(filled: &Filled, session: &mut Session<'_>) {
    let app = &filled.app;
    let found = |path: String| async move {
        app.get(&path).await.expect(200);
    };
    let addresses =
        [format!("inbox13@{SYSTEM_DOMAIN}"), filled.mailbox.address.clone(), format!("a3@{}", filled.domain)];
    let address = |number: usize| addresses[number % addresses.len()].clone();
    session
        .record("GET /v1/inbox/{address}", &["find_token", "scan_inbox"], |number| {
            found(format!("/v1/inbox/{}", address(number)))
        })
        .await;
    session
        .record("GET /v1/inbox/{address}?since=", &["find_token", "scan_inbox"], |number| {
            found(format!("/v1/inbox/{}?since={}", address(number), filled.since))
        })
        .await;

    let readable = filled.ids().await;
    let id = |number: usize| readable[number % readable.len()][number];
    session
        .record("GET /v1/email/{id}", &["find_token", "find_readable_message"], |number| {
            found(format!("/v1/email/{}", id(number)))
        })
        .await;
    session
        .record("GET /v1/email/{id}/raw", &["find_token", "find_readable_message"], |number| async move {
            assert_eq!(app.get(&format!("/v1/email/{}/raw", id(number))).await.status, 200);
        })
        .await;

    let large = format!("large@{SYSTEM_DOMAIN}");
    // Random digits: 75 KB, compressed.
    let text: Vec<String> = (0..4_500).map(|_| Uuid::new_v4().simple().to_string()).collect();
    app.deliver(&large, "large", &text.join("\r\n")).await;
    let large = app.emails(&large).await[0]["id"].as_str().unwrap().to_owned();
    session
        .record("GET /v1/email/{id} of 150 KB", &["find_token", "find_readable_message", "raw_chunk"], |_| {
            found(format!("/v1/email/{large}"))
        })
        .await;

    session
        .record(
            "DELETE /v1/email/{id}",
            &["find_token", "find_readable_message", "delete_message"],
            |number| async move {
                let path = format!("/v1/email/{}", id(number));
                assert_eq!(app.delete(&path).await.status, 204);
            },
        )
        .await;
    session
        .record("DELETE /v1/inbox/{address}", &["find_token", "clear_inbox"], |number| async move {
            let path = format!("/v1/inbox/inbox{}@{SYSTEM_DOMAIN}", 100 + number);
            assert_eq!(app.delete(&path).await.status, 204);
        })
        .await;
}

async fn record_mailbox_api(filled: &Filled, session: &mut Session<'_>) {
    let (app, mailbox) = (&filled.app, &filled.mailbox);
    let found = |path: String| async move {
        app.get_mailbox(mailbox, &path).await.expect(200);
    };
    session
        .record("GET /api/messages", &["find_mailbox", "list_mailbox_messages"], |number| {
            found(format!("/api/messages?page={}", 1 + number % 2))
        })
        .await;
    let [_, ids, _] = filled.ids().await;
    session
        .record("GET /api/messages/{id}", &["find_mailbox", "find_mailbox_message"], |number| {
            found(format!("/api/messages/{}", ids[number]))
        })
        .await;
    session.record("GET /api/me", &["find_mailbox", "mailbox_used"], |_| found("/api/me".to_owned())).await;
    session
        .record("POST /api/token", &["find_mailbox_to_sign_in"], |_| async move {
            let body = json!({ "address": mailbox.address, "password": mailbox.password });
            app.request(Method::POST, "/api/token").json(&body).send().await.expect(200);
        })
        .await;
}

async fn record_pro_api(filled: &Filled, session: &mut Session<'_>) {
    let app = &filled.app;
    session
        .record("GET /pro/api/accounts", &["find_token", "list_tenant_mailboxes"], |number| async move {
            let path = format!("/pro/api/accounts?page={}", 1 + number % 2);
            app.request(Method::GET, &path).bearer(&app.tenant.pro).send().await.expect(200);
        })
        .await;
}

async fn record_mail(filled: &Filled, session: &mut Session<'_>) {
    let send = |recipient: String| async move {
        let mut client = SmtpClient::connect_with_ehlo(filled.app.smtp()).await;
        client.expect_positive("MAIL FROM:<ada@client.example> SIZE=2000").await;
        client.expect_positive(&format!("RCPT TO:<{recipient}>")).await;
        client.expect_positive("DATA").await;
        client.send(smtp::dot_stuffed(&smtp::message("ada@client.example", "hello", "text"))).await;
        assert_eq!(client.reply().await.code, 250);
        client.expect_positive("QUIT").await;
    };
    session
        .record("a mail to an address without a mailbox", &["accept_mail"], |number| {
            send(format!("inbox{number}@{SYSTEM_DOMAIN}"))
        })
        .await;
    // Each to another: a yes is kept for 5 s.
    session
        .record("a mail to a mailbox", &["find_recipients", "accept_mail"], |number| {
            send(filled.others[number].address.clone())
        })
        .await;
    session
        .record("a mail to a custom domain", &["find_recipients", "accept_mail"], |number| {
            send(format!("c{number}@{}", filled.domain))
        })
        .await;
}

/// What no request asks for, or none so far: from the store itself.
async fn record_loops(filled: &Filled, session: &mut Session<'_>) {
    let app = &filled.app;
    let store = Store::connect(&app.database().url(), 1, "tempmail tests").unwrap();
    let now = app.clock.now();
    let process: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(store.pool()).await.unwrap();
    session.process = Some(process.unsigned_abs());
    let head = store.poll_stream(None).await.unwrap();
    let position = head.position;
    session
        .record("a look at the stream", &["poll_stream"], |_| async {
            store.poll_stream(Some(&head.snapshot)).await.unwrap();
        })
        .await;
    let recent = now - SignedDuration::from_mins(15);
    session
        .record("a gap in the stream", &["list_arrivals"], |_| async {
            let found = store.list_arrivals(position - 100, position, recent).await;
            assert_eq!(found.unwrap().len(), 100);
        })
        .await;
    let arrivals = store.list_arrivals(position - 100, position, recent).await.unwrap();
    let class = arrivals[0].class;
    let ids: Vec<Uuid> = arrivals.iter().filter(|one| one.class == class).map(|one| one.id).collect();
    session
        .record("arrivals that somebody waits for", &["list_messages_by_id"], |_| async {
            assert_eq!(store.list_messages_by_id(class, &ids).await.unwrap().len(), ids.len());
        })
        .await;
    session
        .record("a WebSocket", &["scan_mailbox"], |_| async {
            let scan = store.scan_mailbox(filled.mailbox.id, 0, 20, now).await.unwrap();
            assert!(scan.is_some());
        })
        .await;
    session
        .record("a wait on all that a tenant owns", &["scan_tenant"], |number| {
            let range = if number % 2 == 0 { ScanRange::After(0) } else { ScanRange::Before(i64::MAX) };
            let store = &store;
            async move {
                let scan = store.scan_tenant(app.tenant.id, None, range, 20, now).await.unwrap();
                assert_eq!(scan.unwrap().rows.len(), 20);
            }
        })
        .await;
    let token: Uuid = sqlx::query_scalar("SELECT id FROM api_token WHERE tenant = $1 AND kind = 'live'")
        .bind(app.tenant.id)
        .fetch_one(&app.pool)
        .await
        .unwrap();
    session
        .record("a Pro session", &["find_token_by_id"], |_| async {
            assert!(store.find_token_by_id(TokenKind::Live, token).await.unwrap().is_some());
        })
        .await;
}

/// What a worker sends on the way of an event to its webhook, beside the looks of its loops.
async fn record_webhooks(filled: &Filled, session: &mut Session<'_>) {
    let app = &filled.app;
    let store = Store::connect(&app.database().url(), 1, "tempmail tests").unwrap();
    let process: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(store.pool()).await.unwrap();
    session.process = Some(process.unsigned_abs());
    let now = app.clock.now();
    // Others' are due then, for this process alone.
    let then = now + SignedDuration::from_hours(2);
    session
        .record("a look for webhooks that are due", &["claim_webhooks"], |_| async {
            let claimed = store.claim_webhooks(HOLDER, &[], 5, 1, then).await.unwrap();
            assert_eq!(claimed.len(), 6);
        })
        .await;
    let (webhook, store) = (filled.webhook, &store);
    let waiting = store.list_pending_events(webhook, HOLDER, 0, 1_000, now).await.unwrap().unwrap();
    let events: Vec<_> = waiting.events.chunks(3).collect();
    assert!(events.len() >= usize::from(REPEATED), "{} events wait", waiting.events.len());
    session
        .record("a webhook's next events", &["list_pending_events"], |number| {
            let after = events[number % 20][0].seq;
            async move {
                let waiting = store.list_pending_events(webhook, HOLDER, after, 16, now).await.unwrap();
                assert!(!waiting.unwrap().events.is_empty());
            }
        })
        .await;
    session
        .record("a webhook's attempts", &["record_deliveries"], |number| {
            let failed = |index: usize| (number % 4 == 0 && index == 2).then_some("http_status");
            let attempt = |(index, event): (usize, &PendingEvent)| DeliveryAttempt {
                id: new_id(now),
                event: event.id,
                seq: event.seq,
                number: 1,
                started_at: now,
                status_code: 204,
                error: failed(index),
                duration_ms: 12,
                retry_after: None,
            };
            let attempts: Vec<_> = events[number].iter().enumerate().map(attempt).collect();
            async move {
                let gaps = [SignedDuration::from_secs(5); 9];
                let recorded = store.record_deliveries(webhook, HOLDER, &attempts, &gaps, now).await;
                assert_eq!(recorded.unwrap(), RecordOutcome::Active);
            }
        })
        .await;
    session
        .record("a renewal of what is in hand", &["renew_webhook_leases"], |_| async {
            store.renew_webhook_leases(HOLDER, &[webhook]).await.unwrap();
        })
        .await;
    session
        .record("the end of a webhook's turn", &["release_webhook_lease"], |_| async {
            store.release_webhook_lease(webhook, HOLDER, None).await.unwrap();
        })
        .await;
    session
        .record("a measurement of what waits", &["webhook_backlog"], |_| async {
            assert!(store.webhook_backlog().await.unwrap().webhooks >= i64::from(filled::LANES));
        })
        .await;
}
