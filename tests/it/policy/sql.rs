//! Where SQL may take the time from, what opens a transaction, and that columns are named.

use super::source_files;

/// Lines with these may: the first measures how far the server's clock is ahead, the second are about the lease of a live
/// process, the third bound the time that a caller gives to a function with the owner's rights, and the fourth say when
/// people did something.
const MAY_ASK: [&str; 4] = ["/* clock_offset */", "/* lease */", "/* bound */", "/* audit */"];

/// SQL that asks the server for the time.
const SERVER_TIME: &[&str] = &[
    "now()",
    "current_timestamp",
    "current_date",
    "current_time",
    "localtimestamp",
    "clock_timestamp",
    "statement_timestamp",
    "transaction_timestamp",
    "timeofday",
];

/// Business time is an argument, in SQL too: a test that moves the clock moves all of it.
#[test]
fn sql_does_not_ask_the_server_for_the_time() {
    // No other crate has SQL: none of them depends on sqlx.
    let files = source_files("libs/store", &[".rs", ".sql"]);
    assert!(files.iter().any(|file| file.ends_with("0001_baseline.sql")), "the migrations are looked at");
    for file in files {
        let text = std::fs::read_to_string(&file).expect("source is UTF-8").to_ascii_lowercase();
        let code = text
            .lines()
            .map(str::trim_start)
            .filter(|line| !line.starts_with("--") && !line.starts_with("//"));
        for (number, line) in code.enumerate() {
            for time in SERVER_TIME {
                // `clock.now()` is what should be asked.
                let asks = line.match_indices(time).any(|(at, _)| {
                    !line[..at].ends_with(|c: char| c == '.' || c == '_' || c == ':' || c.is_alphanumeric())
                });
                assert!(
                    !asks || MAY_ASK.iter().any(|mark| line.contains(mark)),
                    "{} uses {time} near its line {number}: {line}",
                    file.display()
                );
            }
        }
    }
}

/// A lock never waits for a process: each call of the store is one statement, which commits by itself. Only
/// `migrate` opens a transaction.
#[test]
fn the_store_opens_no_transaction() {
    for file in
        source_files("libs/store/src", &[".rs"]).iter().filter(|file| !file.ends_with("schema/object.rs"))
    {
        let text = std::fs::read_to_string(file).expect("source is UTF-8");
        for words in [".begin()", "\"BEGIN", "*/ BEGIN"] {
            assert!(!text.contains(words), "{} opens a transaction: make it one statement", file.display());
        }
    }
}

/// What selects the columns of a table or view whatever they are. Those of a subquery or of `unnest` have their names
/// beside it.
fn unnamed_columns(sql: &str) -> Vec<&str> {
    let lines =
        sql.lines().map(str::trim_start).filter(|line| !line.starts_with("--") && !line.starts_with("//"));
    let is_unnamed = |line: &&str| {
        let mut selected = line.split("SELECT * FROM ").skip(1);
        let of_table = selected.any(|from| !from.starts_with('(') && !from.starts_with("unnest("));
        of_table || line.ends_with("SELECT *") || line.contains("RETURNING *")
    };
    lines.filter(is_unnamed).collect()
}

/// Whether `alias.*` stands in a line.
fn has_row(line: &str) -> bool {
    line.match_indices(".*")
        .any(|(at, _)| line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
}

/// A column that a later schema adds changes no result: a function whose result is that of a table fails from then on.
#[test]
fn functions_views_and_statements_name_their_columns() {
    for file in source_files("libs/store", &[".rs", ".sql"]) {
        let text = std::fs::read_to_string(&file).expect("source is UTF-8");
        let mut unnamed = unnamed_columns(&text);
        if file.extension().is_some_and(|extension| extension == "sql") {
            unnamed.extend(text.lines().filter(|line| !line.starts_with("--") && has_row(line)));
        }
        assert!(unnamed.is_empty(), "{}: name the columns: {unnamed:#?}", file.display());
    }
}

#[test]
fn finds_columns_that_are_not_named() {
    for unnamed in
        ["SELECT * FROM mailbox", "(SELECT * FROM mailbox b", "SELECT *", "DELETE FROM a RETURNING *"]
    {
        assert_eq!(unnamed_columns(unnamed), [unnamed]);
    }
    for named in ["SELECT * FROM unnest(p_ids) AS i (id)", "SELECT * FROM (SELECT 1) a", "SELECT count(*)"] {
        assert_eq!(unnamed_columns(named), [""; 0]);
    }
    assert!(has_row("SELECT m.* FROM message m") && !has_row("SELECT 2.5 * 2, count(*)"));
}
