-- API tokens: created.

-- Creates a token; p_surfaces: the drop-in surfaces that it is for. Answers created, limit_reached, or tenant_disabled
-- (suspended or removed).
CREATE OR REPLACE FUNCTION create_token(
    p_id uuid, p_tenant uuid, p_kind text, p_name text, p_hint text, p_hash bytea, p_surfaces text[], p_created_by text,
    p_now timestamptz, p_expires_at timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_refusal text := check_limit(p_tenant, 'token', p_now);
BEGIN
    IF v_refusal IS NOT NULL THEN RETURN v_refusal; END IF;
    INSERT INTO api_token (id, tenant, kind, name, hint, hash, surfaces, created_by, created_at, expires_at)
    VALUES (p_id, p_tenant, p_kind, p_name, p_hint, p_hash, p_surfaces, p_created_by, p_now, p_expires_at);
    RETURN 'created';
END $$;
