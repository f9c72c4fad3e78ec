-- The limits of tenants. A row that counts towards a limit is created while its tenant is locked, and counted by a
-- statement of its own, whose snapshot is younger than the lock: so of concurrent calls exactly as many succeed as
-- the limit permits.

-- Locks a tenant and returns its row; nulls where it is suspended or removed.
CREATE OR REPLACE FUNCTION lock_tenant(p_id uuid) RETURNS tenant LANGUAGE plpgsql AS $$
DECLARE
    v_tenant tenant;
BEGIN
    SELECT * INTO v_tenant FROM tenant t
     WHERE t.id = p_id AND NOT t.suspended AND t.removed_at IS NULL FOR NO KEY UPDATE;
    RETURN v_tenant;
END $$;
