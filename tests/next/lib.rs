//! A schema of the next version, made up for tests: with every kind of change that programs of this version serve over.

use tempmail_store::{MigrationFile, SCHEMA, SchemaDefinition, SqlFile};

/// The tables that get a column, in a migration each: one that locks several tables may deadlock with the roles.
const TABLES: [&str; 9] = [
    "tenant",
    "domain",
    "mailbox",
    "api_token",
    "webhook",
    "webhook_event",
    "webhook_delivery",
    "message",
    "raw",
];

const DROP_ACCEPT_MAIL: &str = "DROP FUNCTION IF EXISTS accept_mail;\n";

/// The next version: a column in each table and in `visible_message`, an OUT parameter of `accept_mail`, another signature
/// of `inbox_messages`. Programs of this version work with it.
///
/// # Panics
/// A function or the view is not defined as it was when this was written.
pub fn next_schema() -> SchemaDefinition {
    let mut migrations = SCHEMA.migrations.to_vec();
    for (table, version) in TABLES.into_iter().zip(SCHEMA.version() + 1..) {
        let text = format!("ALTER TABLE {table} ADD COLUMN of_next text").leak();
        migrations.push(MigrationFile { version, name: table, text });
    }
    let files: Vec<SqlFile> = SCHEMA.files.iter().map(next_file).collect();
    SchemaDefinition {
        migrations: migrations.leak(),
        files: files.leak(),
        lowest_compatible: SCHEMA.version(),
    }
}

fn next_file(file: &SqlFile) -> SqlFile {
    let changes: &[(&str, &str)] = match file.name {
        "mail/accept" => &[("OUT o_inbox uuid[]", "OUT o_inbox uuid[], OUT o_next text")],
        "mail/message" => &[
            ("\n      FROM message m\n     WHERE", ", m.of_next\n      FROM message m\n     WHERE"),
            (
                "FUNCTION inbox_messages(\n    p_class smallint",
                "FUNCTION inbox_messages(\n    p_next text, p_class smallint",
            ),
        ],
        _ => return *file,
    };
    let mut text = file.text.to_owned();
    for (definition, next) in changes {
        assert_eq!(text.matches(definition).count(), 1, "{} has {definition}", file.name);
        text = text.replace(definition, next);
    }
    if file.name == "mail/accept" {
        // Postgres does not replace a function whose result differs. That of the version before has the same name.
        text.insert_str(0, DROP_ACCEPT_MAIL);
    }
    SqlFile { name: file.name, text: text.leak() }
}
