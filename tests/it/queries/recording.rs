//! Statements from the log of Postgres.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor as _};
use tempmail_tests::postgres::{self, Database};
use tempmail_tests::wait::eventually;

/// A statement in the log.
#[derive(Debug, Clone)]
pub struct Statement {
    /// The process of the connection.
    pub process: u32,
    /// The name in its comment; the whole text where it has none, such as `BEGIN`.
    pub name: String,
    /// Its plan, then those of the statements in functions that it called.
    pub plans: Vec<Value>,
}

/// Reads the log of a database.
#[derive(Debug)]
pub struct Recorder<'a> {
    database: &'a Database,
    offset: u64,
}

impl<'a> Recorder<'a> {
    /// Starts at the current end of the log.
    pub async fn start(database: &'a Database) -> Self {
        let mut recorder = Self { database, offset: 0 };
        recorder.take().await;
        recorder
    }

    /// The statements since the last call, in the order in which they started.
    pub async fn take(&mut self) -> Vec<Statement> {
        self.database.wait_until_idle().await;
        // Up to a statement of our own, since the end of the log may be in the middle of an entry of a loop.
        let marker = format!("SELECT 'end of recording at {}'", self.offset);
        self.database.pool().execute(AssertSqlSafe(marker.clone())).await.unwrap();
        let text = eventually("the log has our statement", || async {
            let mut log = File::open(postgres::server().log()).unwrap();
            log.seek(SeekFrom::Start(self.offset)).unwrap();
            let mut text = Vec::new();
            log.read_to_end(&mut text).unwrap();
            let at = text.windows(marker.len()).position(|window| window == marker.as_bytes())?;
            text.truncate(at);
            Some(text)
        })
        .await;
        self.offset += text.len() as u64;
        let text = String::from_utf8(text).unwrap();
        statements(text.rsplit_once('\n').map_or("", |(entries, _)| entries))
    }
}

fn statements(log: &str) -> Vec<Statement> {
    let mut statements: Vec<Statement> = Vec::new();
    // The index of the last statement of each connection.
    let mut current: HashMap<u32, usize> = HashMap::new();
    for (process, text) in entries(log) {
        if let Some((_, plan)) = text.split_once(" plan:\n") {
            let plan: Value = serde_json::from_str(plan).unwrap();
            let Some(&at) = current.get(&process) else { continue };
            let statement = &mut statements[at];
            // Statements in a function end before the statement that called it.
            let of_itself = plan["Query Text"].as_str().is_some_and(|text| name(text) == statement.name);
            statement.plans.insert(if of_itself { 0 } else { statement.plans.len() }, plan["Plan"].clone());
        } else if let Some((how, text)) = text.split_once(": ")
            && (how == "statement" || how.starts_with("execute "))
        {
            current.insert(process, statements.len());
            statements.push(Statement { process, name: name(text).to_owned(), plans: Vec::new() });
        }
    }
    statements
}

/// Process and text of each entry of the log; continuation lines start with a tab.
fn entries(log: &str) -> Vec<(u32, String)> {
    let mut entries: Vec<(u32, String)> = Vec::new();
    for line in log.lines() {
        if let Some(more) = line.strip_prefix('\t') {
            if let Some((_, text)) = entries.last_mut() {
                text.push('\n');
                text.push_str(more);
            }
        } else if let Some((_, rest)) = line.split_once(" [")
            && let Some((process, text)) = rest.split_once("] LOG:  ")
            && let Ok(process) = process.parse()
        {
            entries.push((process, text.to_owned()));
        }
    }
    entries
}

/// `find_token` of `/* find_token */ SELECT …`.
fn name(statement: &str) -> &str {
    let statement = statement.trim();
    let comment = statement.strip_prefix("/*").and_then(|rest| rest.split_once("*/"));
    comment.map_or(statement, |(name, _)| name.trim())
}
