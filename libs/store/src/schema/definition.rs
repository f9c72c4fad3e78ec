//! What the schema of a version consists of: its migrations, and the files of `libs/store/sql`.

/// A version of the schema.
#[derive(Debug, Clone, Copy)]
pub struct SchemaDefinition {
    /// Oldest first. The version of the schema is that of the newest.
    pub migrations: &'static [MigrationFile],
    /// In the order in which they are applied: a function in SQL needs the objects that it names.
    pub files: &'static [SqlFile],
    /// The lowest schema version whose programs work with this schema. What they call is kept, although no file defines
    /// it any more.
    pub lowest_compatible: i64,
}

/// A file of `libs/store/migrations`.
#[derive(Debug, Clone, Copy)]
pub struct MigrationFile {
    /// Its number.
    pub version: i64,
    /// The rest of its name, without the extension.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// A file of `libs/store/sql`, which defines functions, views and triggers.
#[derive(Debug, Clone, Copy)]
pub struct SqlFile {
    /// Its path without the extension.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

// `sqlx::migrate!` would list the migrations, too, but the macro compiles sqlx, tokio and rustls a second time.
macro_rules! migrations {
    ($(($version:literal, $name:literal, $file:literal)),+ $(,)?) => {
        &[$(MigrationFile {
            version: $version,
            name: $name,
            text: include_str!(concat!("../../migrations/", $file, ".sql")),
        }),+]
    };
}

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(SqlFile { name: $name, text: include_str!(concat!("../../sql/", $name, ".sql")) }),+]
    };
}

/// The schema of this version.
pub const SCHEMA: SchemaDefinition = SchemaDefinition {
    migrations: migrations![
        (1, "baseline", "0001_baseline"),
        (2, "free_bytes", "0002_free_bytes"),
        (3, "stored_bytes", "0003_stored_bytes"),
        (4, "usage", "0004_usage"),
        (5, "mailbox_count", "0005_mailbox_count"),
        (6, "domain_due_of_tenant", "0006_domain_due_of_tenant"),
        (7, "stream", "0007_stream"),
        (8, "stream_generation", "0008_stream_generation"),
        (9, "api_token", "0009_api_token"),
        (10, "origin", "0010_origin"),
        (11, "cluster", "0011_cluster"),
        (12, "ended_session", "0012_ended_session"),
        (13, "minted_token", "0013_minted_token"),
        (14, "mailbox", "0014_mailbox"),
        (15, "webhook_event", "0015_webhook_event"),
        (16, "webhook_failures", "0016_webhook_failures"),
        (17, "sink", "0017_sink"),
        (18, "tagged_mail", "0018_tagged_mail"),
        (19, "response_header", "0019_response_header"),
    ],
    files: files![
        "id",
        "partition",
        "change",
        "audit",
        "mail/partition",
        "mail/message",
        "mail/usage",
        "mail/address",
        "mail/stream",
        "mail/accept",
        "mail/deletion",
        "tenants/limit",
        "tenants/origin",
        "tenants/count",
        "domains/name",
        "domains/custom",
        "domains/verify_token_key",
        "tenants/mailbox",
        "domains/system",
        "tenants/tenant",
        "tenants/token",
        "tenants/minted_token",
        "tenants/session",
        "webhooks/webhook",
        "webhooks/delivery",
        "webhooks/probe",
        "kubernetes/epoch",
        "kubernetes/grant",
        "kubernetes/resource",
        "kubernetes/tenant",
        "kubernetes/custom_domain",
        "kubernetes/token",
        "kubernetes/webhook",
        "kubernetes/mailbox",
        "kubernetes/system_domain",
        "kubernetes/cluster",
    ],
    lowest_compatible: 17,
};

impl SchemaDefinition {
    /// Its version.
    pub fn version(&self) -> i64 {
        self.migrations.last().map_or(0, |migration| migration.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_every_migration_of_the_folder_in_order() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let listed = |migration: &MigrationFile| format!("{:04}_{}.sql", migration.version, migration.name);
        assert_eq!(files, SCHEMA.migrations.iter().map(listed).collect::<Vec<_>>());
    }

    #[test]
    fn works_with_the_programs_of_the_version_before() {
        assert!((1..=SCHEMA.version()).contains(&SCHEMA.lowest_compatible));
    }
}
