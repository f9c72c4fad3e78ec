//! The group roles: roles of Postgres that can't log in and have the rights of a role of tempmail. The login of a
//! process is a member of one, and is checked for these rights.

use sqlx::{AssertSqlSafe, PgConnection, Row as _};
use tempmail_model::role_prefix::RolePrefix;

use super::migration::SchemaError;
use super::rights::{self, Rights};
use crate::error::StoreError;
use crate::pool::Store;

/// A group role, named by the processes whose logins are members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupRole {
    /// `tempmail ingest`.
    Ingest,
    /// `tempmail api`.
    Api,
    /// `tempmail worker`.
    Worker,
    /// `tempmail operator`, and the administrative commands.
    Operator,
}

impl GroupRole {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ingest, Self::Api, Self::Worker, Self::Operator];

    /// The name of the role of tempmail.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Api => "api",
            Self::Worker => "worker",
            Self::Operator => "operator",
        }
    }

    /// Its name in Postgres, which needs no quoting.
    pub fn name(self, prefix: &RolePrefix) -> String {
        format!("{prefix}_{}", self.as_str())
    }

    /// What it may do.
    pub(super) const fn rights(self) -> &'static Rights {
        match self {
            Self::Ingest => &rights::INGEST,
            Self::Api => &rights::API,
            Self::Worker => &rights::WORKER,
            Self::Operator => &rights::OPERATOR,
        }
    }
}

/// Creates the group roles that are missing. Returns the statements for those that this login may not create.
pub(super) async fn create_missing(
    connection: &mut PgConnection,
    prefix: &RolePrefix,
) -> Result<Vec<String>, StoreError> {
    let names: Vec<String> = GroupRole::ALL.iter().map(|group| group.name(prefix)).collect();
    let missing: Vec<String> = sqlx::query_scalar(
        "/* migrate */ SELECT n.name FROM unnest($1::text[]) WITH ORDINALITY n (name, number)
          WHERE NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = n.name) ORDER BY n.number",
    )
    .bind(names)
    .fetch_all(&mut *connection)
    .await?;
    let mut refused = Vec::new();
    for name in missing {
        let statement = format!("CREATE ROLE {name} NOLOGIN");
        let create = AssertSqlSafe(format!("/* migrate */ {statement}"));
        match sqlx::query(create).execute(&mut *connection).await.map_err(StoreError::from) {
            Ok(_) => {}
            Err(StoreError::Denied(_)) => refused.push(statement),
            // Roles are a server's, and our lock is a database's: `migrate` of another database was first.
            Err(error) if error.is_duplicate() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(refused)
}

const LACKING_RIGHT: &str = "/* lacking_right */
    SELECT current_user::text, l.lacking FROM (
        SELECT format('%s on %s', r.privilege, r.name) AS lacking
        FROM unnest($1::text[], $2::text[], $3::text[]) AS r (name, privilege, column_name)
        WHERE NOT CASE WHEN r.column_name IS NULL THEN has_table_privilege(r.name, r.privilege)
                       ELSE has_column_privilege(r.name, r.column_name, r.privilege) END
        UNION ALL
        SELECT format('EXECUTE on %s', f.name) FROM unnest($4::text[]) AS f (name)
        WHERE NOT EXISTS (SELECT FROM pg_proc p
                          WHERE p.pronamespace = 'public'::regnamespace AND p.proname = f.name
                            AND has_function_privilege(p.oid, 'EXECUTE'))
    ) l LIMIT 1";

impl Store {
    /// Checks that the login has the rights of a group role, as a member or otherwise. The schema must be that of this
    /// version.
    ///
    /// # Errors
    /// [`SchemaError::LacksRight`]; [`SchemaError::Store`].
    pub async fn check_rights(&self, role: GroupRole, prefix: &RolePrefix) -> Result<(), SchemaError> {
        let (mut tables, mut privileges, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for table in role.rights().tables {
            for (privilege, column) in table.privileges() {
                tables.push(table.table);
                privileges.push(privilege);
                columns.push(column);
            }
        }
        let functions = role.rights().functions.concat();
        let lacking = sqlx::query(LACKING_RIGHT).bind(tables).bind(privileges).bind(columns).bind(functions);
        let lacking: Option<(String, String)> =
            self.fetch_optional(lacking, |row| Ok((row.try_get(0)?, row.try_get(1)?))).await?;
        let Some((login, right)) = lacking else { return Ok(()) };
        Err(SchemaError::LacksRight { login, right, role: role.as_str(), group: role.name(prefix) })
    }
}
