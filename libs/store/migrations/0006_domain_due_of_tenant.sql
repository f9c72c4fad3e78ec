-- The domains of a tenant that are due for a check, so that tenants take turns.
CREATE INDEX domain_due_of_tenant ON domain (tenant, next_check_at) WHERE next_check_at IS NOT NULL;
