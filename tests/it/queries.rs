//! The statements of hot paths over a million mails: one round trip beside the authentication, by a suitable index, and few
//! rows. They are read from the log of Postgres, so that they are those of the program and not copies.

mod background;
mod fixture;
mod loops;
mod plan;
mod recording;
mod requests;
mod session;
mod statements;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::Path;

use futures_util::FutureExt as _;
use tokio::sync::OnceCell;

use fixture::QueryFixture;
use recording::{Recorder, Statement};
use session::{RecordedRequest, Session};
use statements::{COLD, HOT, HotStatement, TINY};

/// How often each request is made: Postgres may change to a generic plan after the fifth execution on a connection, and
/// a role has three connections.
const REPEATED: u8 = 36;
/// Executions on one connection after which its plan no longer changes.
const EXECUTIONS_MIN: usize = 10;

/// One for the authentication, and one for the read; a mail with more than 32 KiB of compressed data takes one more for
/// each further 128 KiB, and a later page of messages one for each 500 messages before it.
#[tokio::test(flavor = "multi_thread")]
async fn sends_one_statement_beside_the_authentication_of_a_hot_request() {
    for recorded in recording().await {
        assert_eq!(recorded.unexpected(), None, "{} sends {:?}", recorded.request, recorded.expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn finds_rows_of_hot_statements_by_a_suitable_index() {
    for (hot, statement) in hot_statements().await {
        for scan in statement.plans.iter().flat_map(plan::scans) {
            if TINY.contains(&scan.table.as_str()) {
                continue;
            }
            let fits = scan.index.as_deref().is_some_and(|index| hot.indexes.contains(&index));
            assert!(fits && scan.bounded, "{} has the scan {scan:?}: {:#?}", hot.name, statement.plans);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_a_bounded_number_of_rows_in_hot_statements() {
    for (hot, statement) in hot_statements().await {
        let rows: u64 = statement.plans.iter().map(plan::rows_read).sum();
        assert!(rows <= hot.rows, "{} read {rows} rows: {:#?}", hot.name, statement.plans);
    }
}

/// The first plans of a connection are custom plans, later ones may be generic.
#[tokio::test(flavor = "multi_thread")]
async fn records_every_hot_statement_often_enough_on_one_connection() {
    let mut executions: BTreeMap<&str, BTreeMap<u32, usize>> = BTreeMap::new();
    for (hot, statement) in hot_statements().await {
        *executions.entry(hot.name).or_default().entry(statement.process).or_default() += 1;
    }
    for hot in HOT {
        let most = executions.get(hot.name).and_then(|processes| processes.values().max());
        assert!(most >= Some(&EXECUTIONS_MIN), "{} was executed {most:?} times on one connection", hot.name);
    }
}

/// A new statement has to be added to HOT, with its indexes and a request that sends it, or to COLD.
#[test]
fn lists_every_statement_of_the_store_as_hot_or_cold() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../libs/store/src");
    let mut named = BTreeSet::new();
    collect_names(&source, &mut named);
    let hot: BTreeSet<String> = HOT.iter().map(|hot| hot.name.to_owned()).collect();
    let cold: BTreeSet<String> = COLD.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(hot.intersection(&cold).next(), None, "a statement is either hot or cold");
    let known: BTreeSet<String> = hot.union(&cold).cloned().collect();
    assert_eq!(named.difference(&known).collect::<Vec<_>>(), [""; 0], "add these statements to HOT or COLD");
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
async fn hot_statements() -> Vec<(&'static HotStatement, &'static Statement)> {
    let statements = recording().await.iter().flat_map(|recorded| &recorded.statements);
    let of = |statement: &Statement| HOT.iter().find(|hot| hot.name == statement.name);
    statements.filter_map(|statement| Some((of(statement)?, statement))).collect()
}

/// All requests, which are made once for all tests.
async fn recording() -> &'static [RecordedRequest] {
    static RECORDING: OnceCell<Option<Vec<RecordedRequest>>> = OnceCell::const_new();
    // After a failure the other tests do not make the requests again.
    let recorded =
        RECORDING.get_or_init(|| async { AssertUnwindSafe(record()).catch_unwind().await.ok() }).await;
    recorded.as_deref().expect("the requests succeeded")
}

async fn record() -> Vec<RecordedRequest> {
    let fixture = QueryFixture::start().await;
    let mut session = Session {
        recorder: Recorder::start(fixture.app.database()).await,
        recorded: Vec::new(),
        process: None,
    };
    requests::record_token_api(&fixture, &mut session).await;
    requests::record_mailbox_api(&fixture, &mut session).await;
    requests::record_pro_api(&fixture, &mut session).await;
    requests::record_mail(&fixture, &mut session).await;
    loops::record_stream(&fixture, &mut session).await;
    loops::record_webhooks(&fixture, &mut session).await;
    requests::record_tags(&fixture, &mut session).await;
    session.recorded
}
