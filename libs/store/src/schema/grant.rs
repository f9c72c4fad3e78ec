//! Makes the rights at the objects of tempmail those that `rights` lists: none for PUBLIC, and exactly its own for
//! each group role. What administrators grant to other roles stays, and objects that are not part of tempmail are
//! left alone.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{AssertSqlSafe, PgConnection};
use tempmail_model::role_prefix::RolePrefix;

use super::group_role::GroupRole;
use super::rights::Privilege;
use crate::error::StoreError;

/// The rights of PUBLIC ($1: names of tables) and of the group roles ($2) at our tables, views and functions. The
/// rights of an owner are not among them, should a group role be one.
const GRANTED: &str = "\
/* migrate */ WITH object (kind, name, column_name, owner, acl) AS (
    SELECT 'TABLE', c.oid::regclass::text, NULL, c.relowner, c.relacl
      FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace AND (c.relname = ANY ($1) OR c.relispartition)
    UNION ALL
    SELECT 'TABLE', c.oid::regclass::text, t.attname::text, c.relowner, t.attacl
      FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid AND NOT t.attisdropped
     WHERE c.relnamespace = 'public'::regnamespace AND (c.relname = ANY ($1) OR c.relispartition)
    UNION ALL
    SELECT 'FUNCTION', s.name, NULL, p.proowner, coalesce(p.proacl, acldefault('f', p.proowner))
      FROM schema_object s
      JOIN pg_proc p ON p.pronamespace = 'public'::regnamespace AND p.oid::regprocedure::text = s.name
     WHERE s.kind = 'function'
), grantee (oid, name) AS (
    SELECT 0::oid, 'PUBLIC' UNION ALL SELECT r.oid, r.rolname::text FROM pg_roles r WHERE r.rolname = ANY ($2)
)
SELECT o.kind, o.name, g.name, a.privilege_type, o.column_name, a.is_grantable
  FROM object o CROSS JOIN LATERAL aclexplode(o.acl) a JOIN grantee g ON g.oid = a.grantee
 WHERE a.grantee <> o.owner";

/// The group roles that exist; one that owns the schema needs no grants.
const GROUP_ROLES: &str = "\
/* migrate */ SELECT r.rolname::text FROM pg_roles r
 WHERE r.rolname = ANY ($1)
   AND r.oid <> (SELECT c.relowner FROM pg_class c WHERE c.oid = 'schema_object'::regclass)";

/// Statements about the schema and the database that are needed ($1: names of group roles), and whether this login may
/// run them. A group role needs USAGE and CONNECT where PUBLIC does not have them any more.
const AROUND: &str = "\
/* migrate */ WITH place AS (
    SELECT n.oid AS schema, pg_has_role(n.nspowner, 'USAGE') AS owns_schema,
           coalesce(n.nspacl, acldefault('n', n.nspowner)) AS acl,
           d.oid AS database, quote_ident(d.datname) AS name, pg_has_role(d.datdba, 'USAGE') AS owns_database
      FROM pg_namespace n, pg_database d WHERE n.nspname = 'public' AND d.datname = current_database()
), creator AS (
    SELECT a.grantee FROM place p CROSS JOIN LATERAL aclexplode(p.acl) a WHERE a.privilege_type = 'CREATE'
)
SELECT 'REVOKE CREATE ON SCHEMA public FROM PUBLIC', p.owns_schema
  FROM place p WHERE EXISTS (SELECT FROM creator c WHERE c.grantee = 0)
UNION ALL
SELECT format(s.statement, r.rolname, p.name), CASE s.of_schema WHEN true THEN p.owns_schema ELSE p.owns_database END
  FROM pg_roles r CROSS JOIN place p CROSS JOIN LATERAL (VALUES
      ('REVOKE CREATE ON SCHEMA public FROM %1$s', true, EXISTS (SELECT FROM creator c WHERE c.grantee = r.oid)),
      ('GRANT USAGE ON SCHEMA public TO %1$s', true, NOT has_schema_privilege(r.oid, p.schema, 'USAGE')),
      ('GRANT CONNECT ON DATABASE %2$s TO %1$s', false, NOT has_database_privilege(r.oid, p.database, 'CONNECT'))
  ) s (statement, of_schema, is_needed)
 WHERE r.rolname = ANY ($1) AND s.is_needed";

/// What somebody may do at an object.
#[derive(Debug, Default, PartialEq, Eq)]
struct Grants {
    privileges: BTreeSet<Privilege>,
    /// Whether some of it may be granted to others.
    is_grantable: bool,
}

/// A table, view or function, and a group role or PUBLIC.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Grantee {
    /// `TABLE` or `FUNCTION`.
    kind: String,
    /// As Postgres quotes it, a function with the types of its arguments.
    object: String,
    role: String,
}

/// Makes the rights exact; changes nothing where they are. Returns the statements that are needed and that this login
/// may not run.
pub(super) async fn apply(
    connection: &mut PgConnection,
    prefix: &RolePrefix,
) -> Result<Vec<String>, StoreError> {
    let names: Vec<String> = GroupRole::ALL.iter().map(|group| group.name(prefix)).collect();
    let existing: Vec<String> =
        sqlx::query_scalar(GROUP_ROLES).bind(&names).fetch_all(&mut *connection).await?;
    let around: Vec<(String, bool)> =
        sqlx::query_as(AROUND).bind(&existing).fetch_all(&mut *connection).await?;
    let wanted = wanted(&functions(connection).await?, prefix, &existing);
    let granted = granted(connection, &existing).await?;
    let (own, refused): (Vec<_>, Vec<_>) = around.into_iter().partition(|(_, is_allowed)| *is_allowed);
    let own = own.into_iter().map(|(statement, _)| statement);
    let statements: Vec<String> = own.chain(changes(&granted, &wanted)).collect();
    if !statements.is_empty() {
        // Their names are our own, or as Postgres quotes them.
        let text = AssertSqlSafe(format!("/* migrate */ {}", statements.join(";\n")));
        sqlx::raw_sql(text).execute(connection).await?;
    }
    Ok(refused.into_iter().map(|(statement, _)| statement).collect())
}

/// The functions of tempmail, with the types of their arguments.
async fn functions(connection: &mut PgConnection) -> Result<Vec<String>, StoreError> {
    let statement = "/* migrate */ SELECT name FROM schema_object WHERE kind = 'function'";
    Ok(sqlx::query_scalar(statement).fetch_all(connection).await?)
}

async fn granted(
    connection: &mut PgConnection,
    groups: &[String],
) -> Result<BTreeMap<Grantee, Grants>, StoreError> {
    type Row = (String, String, String, String, Option<String>, bool);
    let tables = GroupRole::ALL.iter().flat_map(|group| group.rights().tables);
    let tables: Vec<&str> = tables.map(|rights| rights.table).collect();
    let rows: Vec<Row> = sqlx::query_as(GRANTED).bind(tables).bind(groups).fetch_all(connection).await?;
    let mut granted: BTreeMap<Grantee, Grants> = BTreeMap::new();
    for (kind, object, role, privilege, column, is_grantable) in rows {
        let grants = granted.entry(Grantee { kind, object, role }).or_default();
        grants.privileges.insert((privilege, column));
        grants.is_grantable |= is_grantable;
    }
    Ok(granted)
}

fn wanted(functions: &[String], prefix: &RolePrefix, existing: &[String]) -> BTreeMap<Grantee, Grants> {
    let mut wanted: BTreeMap<Grantee, Grants> = BTreeMap::new();
    for group in GroupRole::ALL {
        let (role, rights) = (group.name(prefix), group.rights());
        if !existing.contains(&role) {
            continue;
        }
        for table in rights.tables {
            let grantee = Grantee { kind: "TABLE".into(), object: table.table.into(), role: role.clone() };
            wanted.entry(grantee).or_default().privileges.extend(table.privileges());
        }
        let may_execute = |function: &&String| {
            let name = function.split_once('(').map_or(function.as_str(), |(name, _)| name);
            rights.functions.iter().any(|names| names.contains(&name))
        };
        for function in functions.iter().filter(may_execute) {
            let grantee = Grantee { kind: "FUNCTION".into(), object: function.clone(), role: role.clone() };
            wanted.entry(grantee).or_default().privileges.insert(("EXECUTE".into(), None));
        }
    }
    wanted
}

/// The statements that turn what is granted into what is wanted.
fn changes(granted: &BTreeMap<Grantee, Grants>, wanted: &BTreeMap<Grantee, Grants>) -> Vec<String> {
    let grantees: BTreeSet<&Grantee> = granted.keys().chain(wanted.keys()).collect();
    let mut statements = Vec::new();
    for grantee in grantees {
        let Grantee { kind, object, role } = grantee;
        let (granted, wanted) = (granted.get(grantee), wanted.get(grantee));
        if granted == wanted {
            continue;
        }
        if granted.is_some() {
            // Of a table this revokes the rights at its columns, too.
            statements.push(format!("REVOKE ALL ON {kind} {object} FROM {role}"));
        }
        if let Some(wanted) = wanted {
            let privileges = list(&wanted.privileges);
            statements.push(format!("GRANT {privileges} ON {kind} {object} TO {role}"));
        }
    }
    statements
}

/// `INSERT, SELECT (id, name)`
fn list(privileges: &BTreeSet<Privilege>) -> String {
    let mut columns: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (privilege, column) in privileges {
        columns.entry(privilege).or_default().extend(column.as_deref());
    }
    let each = columns.into_iter().map(|(privilege, columns)| {
        if columns.is_empty() {
            privilege.to_owned()
        } else {
            format!("{privilege} ({})", columns.join(", "))
        }
    });
    each.collect::<Vec<_>>().join(", ")
}
