-- API tokens: created.

-- Creates a token. The tenant is locked before its tokens are counted: the count is a statement of its own,
-- whose snapshot is younger than the lock, so of concurrent calls exactly as many succeed as the limit
-- permits. Answers created, limit_reached, or tenant_disabled (suspended or removed).
CREATE OR REPLACE FUNCTION create_token(
    p_id uuid, p_tenant uuid, p_kind text, p_name text, p_hint text, p_hash bytea, p_created_by text,
    p_now timestamptz, p_expires_at timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_tenant tenant;
BEGIN
    SELECT * INTO v_tenant FROM tenant WHERE id = p_tenant FOR NO KEY UPDATE;
    IF NOT FOUND OR v_tenant.suspended OR v_tenant.removed_at IS NOT NULL THEN
        RETURN 'tenant_disabled';
    END IF;
    IF (SELECT count(*) FROM api_token
         WHERE tenant = p_tenant AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > p_now))
       >= v_tenant.token_limit THEN
        RETURN 'limit_reached';
    END IF;
    INSERT INTO api_token (id, tenant, kind, name, hint, hash, created_by, created_at, expires_at)
    VALUES (p_id, p_tenant, p_kind, p_name, p_hint, p_hash, p_created_by, p_now, p_expires_at);
    RETURN 'created';
END $$;
