-- API tokens: created.

-- The number of tokens of a tenant that count towards its limit: those that are neither revoked nor expired.
CREATE OR REPLACE FUNCTION count_tokens(p_tenant uuid, p_now timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT count(*) FROM api_token
     WHERE tenant = p_tenant AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > p_now)
$$;

-- Creates a token. Answers created, limit_reached, or tenant_disabled (suspended or removed).
CREATE OR REPLACE FUNCTION create_token(
    p_id uuid, p_tenant uuid, p_kind text, p_name text, p_hint text, p_hash bytea, p_created_by text,
    p_now timestamptz, p_expires_at timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_tenant tenant := lock_tenant(p_tenant);
BEGIN
    IF v_tenant.id IS NULL THEN
        RETURN 'tenant_disabled';
    ELSIF count_tokens(p_tenant, p_now) >= v_tenant.token_limit THEN
        RETURN 'limit_reached';
    END IF;
    INSERT INTO api_token (id, tenant, kind, name, hint, hash, created_by, created_at, expires_at)
    VALUES (p_id, p_tenant, p_kind, p_name, p_hint, p_hash, p_created_by, p_now, p_expires_at);
    RETURN 'created';
END $$;
