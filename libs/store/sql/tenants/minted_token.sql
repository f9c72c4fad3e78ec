-- Minted tokens: live tokens for one address. They are used through their parent, so whatever ends that ends them.

-- Mints a token with the live token p_parent. p_limit: how many of a tenant may be unexpired. Whether the tenant may read the
-- address is for the caller to see. Answers minted, limit_reached, or tenant_disabled; raises TM004 where the parent ended.
CREATE OR REPLACE FUNCTION mint_token(
    p_id uuid, p_parent uuid, p_tenant uuid, p_hash bytea, p_address_key uuid, p_expires_at timestamptz, p_limit bigint,
    p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    -- Locked before it is counted, as in check_limit.
    PERFORM FROM tenant t WHERE t.id = p_tenant AND NOT t.suspended AND t.removed_at IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 'tenant_disabled';
    END IF;
    PERFORM FROM api_token k
      WHERE k.id = p_parent AND k.tenant = p_tenant AND k.kind = 'live' AND k.active AND k.revoked_at IS NULL
        AND (k.expires_at > p_now) IS NOT FALSE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the token has ended' USING ERRCODE = 'TM004';
    END IF;
    -- Those of a parent that ended are as good as gone.
    IF (SELECT count(*) FROM minted_token m JOIN api_token k ON k.id = m.parent
         WHERE m.tenant = p_tenant AND m.expires_at > p_now AND k.revoked_at IS NULL
           AND (k.expires_at > p_now) IS NOT FALSE) >= p_limit THEN
        RETURN 'limit_reached';
    END IF;
    INSERT INTO minted_token (id, parent, tenant, hash, address_key, expires_at)
    VALUES (p_id, p_parent, p_tenant, p_hash, p_address_key, p_expires_at);
    RETURN 'minted';
END $$;

-- Revokes a minted token of a tenant; false where there is none.
CREATE OR REPLACE FUNCTION revoke_minted_token(p_tenant uuid, p_id uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM minted_token m WHERE m.id = p_id AND m.tenant = p_tenant;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM record_audit('revoked', 'token', p_id::text, p_tenant);
    RETURN true;
END $$;
