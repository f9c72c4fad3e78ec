//! Whether the login of a process can do what its role needs.

use sqlx::Row as _;
use tempmail_model::role_prefix::RolePrefix;

use super::error::SchemaError;
use super::group_role::GroupRole;
use crate::pool::Store;

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
