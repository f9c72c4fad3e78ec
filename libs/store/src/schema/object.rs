//! Functions, views and triggers. The files of `libs/store/sql` define each of them once; the table `schema_object`
//! records what was applied from which file, and the definition that Postgres showed of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempmail_model::role_prefix::RolePrefix;

use super::definition::{SchemaDefinition, SqlFile};
use super::grant;
use super::migration::{Deviation, MigrationReport, SchemaError, SchemaFinding};
use crate::error::StoreError;

/// The kinds of objects, as `schema_object` and `DROP` name them, in the order in which they are dropped: a trigger
/// needs its function.
const KINDS: [&str; 3] = ["trigger", "function", "view"];

/// The functions, views and triggers of the schema `public` that belong to no extension: kind, name, hash of the
/// definition, and whether this transaction wrote it.
const CATALOG: &str = "\
/* migrate */ WITH object (kind, name, definition, xid) AS (
    SELECT 'function', p.oid::regprocedure::text, pg_get_functiondef(p.oid), p.xmin
      FROM pg_proc p
     WHERE p.pronamespace = 'public'::regnamespace AND p.prokind <> 'a'
       AND NOT EXISTS (SELECT FROM pg_depend d
                        WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    UNION ALL
    SELECT 'view', c.oid::regclass::text, concat_ws(' ', pg_get_viewdef(c.oid), c.reloptions::text), r.xmin
      FROM pg_class c JOIN pg_rewrite r ON r.ev_class = c.oid AND r.rulename = '_RETURN'
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'v'
    UNION ALL
    SELECT 'trigger', format('%I ON %s', t.tgname, t.tgrelid::regclass),
           concat_ws(' ', pg_get_triggerdef(t.oid), t.tgenabled), t.xmin
      FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
     WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal AND t.tgparentid = 0
)
SELECT kind, name, sha256(convert_to(definition, 'UTF8')),
       coalesce(xid = pg_current_xact_id_if_assigned()::xid, false)
  FROM object";

/// A function, view or trigger.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Object {
    kind: String,
    /// A function with the types of its arguments, a trigger with `ON` its table: as `DROP` takes it.
    name: String,
}

impl fmt::Display for Object {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind, self.name)
    }
}

/// An object that exists.
struct ExistingObject {
    hash: Vec<u8>,
    /// Whether this transaction wrote it.
    is_written: bool,
}

/// A row of `schema_object`.
struct AppliedObject {
    object: Object,
    file: String,
    file_hash: Vec<u8>,
    definition_hash: Vec<u8>,
    /// Major version of the server that showed the definition.
    server: i32,
    version: i64,
}

impl AppliedObject {
    fn deviation(&self, present: &HashMap<Object, ExistingObject>, server: i32) -> Option<Deviation> {
        match present.get(&self.object) {
            None => Some(Deviation::Dropped),
            // Another server may write the same definition in another way.
            Some(present) if self.server == server && self.definition_hash != present.hash => {
                Some(Deviation::Changed)
            }
            Some(_) => None,
        }
    }

    /// Whether its file has to be applied again.
    fn is_stale(&self, state: &State, file_hash: &[u8]) -> bool {
        self.file_hash != file_hash
            || self.server != state.server
            || self.deviation(&state.present, state.server).is_some()
    }

    fn kind(&self) -> &str {
        &self.object.kind
    }
}

/// What was applied, and what exists.
struct State {
    recorded: Vec<AppliedObject>,
    present: HashMap<Object, ExistingObject>,
    server: i32,
}

impl State {
    async fn read(connection: &mut PgConnection) -> Result<Self, StoreError> {
        let server: i32 =
            sqlx::query_scalar("/* migrate */ SELECT current_setting('server_version_num')::integer / 10000")
                .fetch_one(&mut *connection)
                .await?;
        let recorded = recorded(connection).await?;
        Ok(Self { recorded, present: present(connection).await?, server })
    }
}

async fn recorded(connection: &mut PgConnection) -> Result<Vec<AppliedObject>, StoreError> {
    type Row = (String, String, String, Vec<u8>, Vec<u8>, i32, i64);
    let rows: Vec<Row> = sqlx::query_as(
        "/* migrate */ SELECT kind, name, file, file_hash, definition_hash, server, version FROM schema_object",
    )
    .fetch_all(connection)
    .await?;
    let rows = rows.into_iter().map(|(kind, name, file, file_hash, definition_hash, server, version)| {
        AppliedObject { object: Object { kind, name }, file, file_hash, definition_hash, server, version }
    });
    Ok(rows.collect())
}

async fn present(connection: &mut PgConnection) -> Result<HashMap<Object, ExistingObject>, StoreError> {
    let rows: Vec<(String, String, Vec<u8>, bool)> = sqlx::query_as(CATALOG).fetch_all(connection).await?;
    let rows = rows.into_iter();
    Ok(rows
        .map(|(kind, name, hash, is_written)| (Object { kind, name }, ExistingObject { hash, is_written }))
        .collect())
}

/// What was changed or dropped by hand since it was applied. To be called before migrations are applied, since these
/// may change definitions, too: that of a view if a column is renamed.
pub(super) async fn deviations(
    connection: &mut PgConnection,
) -> Result<BTreeMap<Object, Deviation>, StoreError> {
    let state = State::read(connection).await?;
    let found = state.recorded.iter().filter_map(|recorded| {
        let deviation = recorded.deviation(&state.present, state.server)?;
        Some((recorded.object.clone(), deviation))
    });
    Ok(found.collect())
}

/// Applies the files whose text or objects changed, drops objects that no compatible program uses any more, and makes
/// the rights of PUBLIC and the group roles those of this version; all of it in one transaction. `by_hand` is what
/// [`deviations`] found before the migrations.
pub(super) async fn apply(
    connection: &mut PgConnection,
    schema: &SchemaDefinition,
    prefix: &RolePrefix,
    by_hand: &BTreeMap<Object, Deviation>,
) -> Result<MigrationReport, SchemaError> {
    let mut transaction = connection.begin().await.map_err(StoreError::from)?;
    let (applied, defined) = apply_files(&mut transaction, schema).await?;
    retire_undefined(&mut transaction, schema.files, &applied, &defined).await?;
    drop_retired(&mut transaction, schema.lowest_compatible).await?;
    let refused = grant::apply(&mut transaction, prefix).await?;
    record_version(&mut transaction, schema).await?;
    let mut findings: Vec<SchemaFinding> = by_hand
        .iter()
        .filter(|(object, _)| defined.contains(object))
        .map(|(object, deviation)| SchemaFinding { object: object.to_string(), deviation: *deviation })
        .collect();
    findings.extend(foreign(&mut transaction).await?);
    transaction.commit().await.map_err(StoreError::from)?;
    Ok(MigrationReport { findings, refused })
}

/// The files that were applied, and the objects that they defined.
async fn apply_files(
    connection: &mut PgConnection,
    schema: &SchemaDefinition,
) -> Result<(BTreeSet<&'static str>, BTreeSet<Object>), SchemaError> {
    let state = State::read(connection).await?;
    let (hashes, version) = (file_hashes(connection, schema.files).await?, schema.version());
    let (mut applied, mut defined) = (BTreeSet::new(), BTreeSet::new());
    for (file, hash) in schema.files.iter().zip(&hashes) {
        let mut recorded = state.recorded.iter().filter(|recorded| recorded.file == file.name).peekable();
        if recorded.peek().is_some() && !recorded.any(|recorded| recorded.is_stale(&state, hash)) {
            continue;
        }
        if applied.is_empty() {
            // For functions created from here on: PUBLIC may not execute them.
            sqlx::query("/* migrate */ ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
                .execute(&mut *connection)
                .await
                .map_err(StoreError::from)?;
        }
        tracing::debug!(file = file.name, "applying functions");
        sqlx::raw_sql(file.text)
            .execute(&mut *connection)
            .await
            .map_err(|error| SchemaError::File { file: file.name, error: error.into() })?;
        applied.insert(file.name);
        let written: Vec<(Object, Vec<u8>)> = present(connection)
            .await?
            .into_iter()
            .filter(|(object, present)| present.is_written && !defined.contains(object))
            .map(|(object, present)| (object, present.hash))
            .collect();
        record(connection, file.name, hash, &written, state.server, version).await?;
        defined.extend(written.into_iter().map(|(object, _)| object));
    }
    Ok((applied, defined))
}

/// SHA-256 of each file's text.
async fn file_hashes(connection: &mut PgConnection, files: &[SqlFile]) -> Result<Vec<Vec<u8>>, StoreError> {
    let texts: Vec<&str> = files.iter().map(|file| file.text).collect();
    Ok(sqlx::query_scalar(
        "/* migrate */ SELECT sha256(convert_to(f.text, 'UTF8'))
           FROM unnest($1::text[]) WITH ORDINALITY f (text, number) ORDER BY f.number",
    )
    .bind(texts)
    .fetch_all(connection)
    .await?)
}

async fn record(
    connection: &mut PgConnection,
    file: &str,
    file_hash: &[u8],
    written: &[(Object, Vec<u8>)],
    server: i32,
    version: i64,
) -> Result<(), StoreError> {
    let kinds: Vec<&str> = written.iter().map(|(object, _)| object.kind.as_str()).collect();
    let names: Vec<&str> = written.iter().map(|(object, _)| object.name.as_str()).collect();
    let hashes: Vec<&[u8]> = written.iter().map(|(_, hash)| hash.as_slice()).collect();
    sqlx::query(
        "/* migrate */ INSERT INTO schema_object (kind, name, file, file_hash, definition_hash, server, version)
         SELECT o.kind, o.name, $4, $5, o.hash, $6, $7
           FROM unnest($1::text[], $2::text[], $3::bytea[]) o (kind, name, hash)
         ON CONFLICT (kind, name) DO UPDATE
            SET file = excluded.file, file_hash = excluded.file_hash,
                definition_hash = excluded.definition_hash, server = excluded.server, version = excluded.version",
    )
    .bind(kinds)
    .bind(names)
    .bind(hashes)
    .bind(file)
    .bind(file_hash)
    .bind(server)
    .bind(version)
    .execute(connection)
    .await?;
    Ok(())
}

/// Records which objects of earlier versions no file defines any more, by an empty name of their file. Programs of
/// their version may still run.
async fn retire_undefined(
    connection: &mut PgConnection,
    files: &[SqlFile],
    applied: &BTreeSet<&'static str>,
    defined: &BTreeSet<Object>,
) -> Result<(), StoreError> {
    for recorded in recorded(connection).await? {
        let is_current = files.iter().any(|file| file.name == recorded.file);
        let is_undefined = applied.contains(recorded.file.as_str()) || !is_current;
        if is_undefined && !recorded.file.is_empty() && !defined.contains(&recorded.object) {
            sqlx::query("/* migrate */ UPDATE schema_object SET file = '' WHERE kind = $1 AND name = $2")
                .bind(recorded.kind())
                .bind(&recorded.object.name)
                .execute(&mut *connection)
                .await?;
        }
    }
    Ok(())
}

/// Drops retired objects whose last version is below `lowest_compatible`.
async fn drop_retired(connection: &mut PgConnection, lowest_compatible: i64) -> Result<(), StoreError> {
    let State { recorded, present, .. } = State::read(connection).await?;
    let unused: Vec<Object> = recorded
        .into_iter()
        .filter(|recorded| recorded.file.is_empty() && recorded.version < lowest_compatible)
        .map(|recorded| recorded.object)
        .collect();
    for kind in KINDS {
        for object in unused.iter().filter(|object| object.kind == kind) {
            if present.contains_key(object) {
                // The name is as Postgres quotes it.
                sqlx::query(AssertSqlSafe(format!("/* migrate */ DROP {kind} {}", object.name)))
                    .execute(&mut *connection)
                    .await?;
                tracing::info!(%object, "dropped: no version that works with this schema uses it");
            }
            sqlx::query("/* migrate */ DELETE FROM schema_object WHERE kind = $1 AND name = $2")
                .bind(&object.kind)
                .bind(&object.name)
                .execute(&mut *connection)
                .await?;
        }
    }
    Ok(())
}

/// Records the version of the objects, and which programs work with them.
async fn record_version(connection: &mut PgConnection, schema: &SchemaDefinition) -> Result<(), StoreError> {
    sqlx::query("/* migrate */ UPDATE schema_object SET version = $1 WHERE version < $1 AND file <> ''")
        .bind(schema.version())
        .execute(&mut *connection)
        .await?;
    sqlx::query(
        "/* migrate */ INSERT INTO schema_compatibility (lowest_version) VALUES ($1)
         ON CONFLICT (singleton) DO UPDATE SET lowest_version = excluded.lowest_version
          WHERE schema_compatibility.lowest_version <> excluded.lowest_version",
    )
    .bind(schema.lowest_compatible)
    .execute(connection)
    .await?;
    Ok(())
}

/// Functions that are not part of tempmail.
async fn foreign(connection: &mut PgConnection) -> Result<Vec<SchemaFinding>, StoreError> {
    let State { recorded, present, .. } = State::read(connection).await?;
    let ours: BTreeSet<Object> = recorded.into_iter().map(|recorded| recorded.object).collect();
    let others: BTreeSet<Object> =
        present.into_keys().filter(|object| object.kind == "function" && !ours.contains(object)).collect();
    let others = others.into_iter();
    Ok(others
        .map(|object| SchemaFinding { object: object.to_string(), deviation: Deviation::Foreign })
        .collect())
}
