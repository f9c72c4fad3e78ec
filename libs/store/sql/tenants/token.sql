-- API tokens: created, and ended with the token that made them.

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

-- Ends what a live token made, and what that made, when it is revoked or gets an earlier expiry: they may do what it may, and
-- not for longer. Each is an entry of the audit trail. What a Pro token made is its tenant's, and stays.
CREATE OR REPLACE FUNCTION end_made_tokens() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_made uuid[];
BEGIN
    -- A token that is being made meanwhile holds its maker (token_origin), and is found when that is locked.
    LOOP
        -- Makers first, so that of two that end at once none waits for the other.
        SELECT array_agg(l.id) INTO v_made FROM (
            WITH RECURSIVE made (id, depth) AS (
                SELECT k.id, 1 FROM api_token k WHERE k.created_by = NEW.id::text
                UNION ALL
                SELECT k.id, m.depth + 1 FROM made m JOIN api_token k ON k.created_by = m.id::text
            )
            SELECT k.id FROM made m JOIN api_token k ON k.id = m.id
             WHERE k.revoked_at IS NULL AND (k.expires_at > coalesce(NEW.revoked_at, NEW.expires_at)) IS NOT FALSE
             ORDER BY m.depth, k.id FOR NO KEY UPDATE OF k
        ) l;
        IF v_made IS NULL THEN
            RETURN NULL;
        END IF;
        IF NEW.revoked_at IS NOT NULL THEN
            UPDATE api_token SET revoked_at = NEW.revoked_at WHERE id = ANY (v_made);
        ELSE
            UPDATE api_token SET expires_at = NEW.expires_at WHERE id = ANY (v_made);
        END IF;
    END LOOP;
END $$;

CREATE OR REPLACE TRIGGER token_ended AFTER UPDATE OF revoked_at, expires_at ON api_token
    FOR EACH ROW WHEN (pg_trigger_depth() = 0 AND NEW.kind = 'live'
        AND (OLD.revoked_at, OLD.expires_at) IS DISTINCT FROM (NEW.revoked_at, NEW.expires_at)
        AND coalesce(NEW.revoked_at, NEW.expires_at) IS NOT NULL)
    EXECUTE FUNCTION end_made_tokens();
