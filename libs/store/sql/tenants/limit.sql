-- The limits of tenants.

-- First in every function that creates a row which counts towards a limit: 'token', 'domain', 'webhook' or 'mailbox'.
-- Answers tenant_disabled (suspended or removed), limit_reached, or null. It locks the tenant before it counts: the
-- count is a statement of its own, whose snapshot is younger than the lock, so of concurrent calls exactly as many
-- succeed as the limit permits.
CREATE OR REPLACE FUNCTION check_limit(p_tenant uuid, p_kind text, p_now timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_tenant  record;
    v_reached boolean;
BEGIN
    SELECT t.token_limit, t.domain_limit, t.webhook_limit, t.mailbox_limit INTO v_tenant FROM tenant t
     WHERE t.id = p_tenant AND NOT t.suspended AND t.removed_at IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 'tenant_disabled';
    END IF;
    v_reached := CASE p_kind
        WHEN 'token' THEN
            (SELECT count(*) FROM api_token k
              WHERE k.tenant = p_tenant AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > p_now))
            >= v_tenant.token_limit
        WHEN 'domain' THEN
            (SELECT count(*) FROM domain d WHERE d.tenant = p_tenant AND d.removed_at IS NULL) >= v_tenant.domain_limit
        WHEN 'webhook' THEN
            (SELECT count(*) FROM webhook w WHERE w.tenant = p_tenant) >= v_tenant.webhook_limit
        WHEN 'mailbox' THEN
            (SELECT count(*) FROM mailbox b WHERE b.tenant = p_tenant AND b.removed_at IS NULL)
            >= v_tenant.mailbox_limit
    END;
    RETURN CASE WHEN v_reached THEN 'limit_reached' END;
END $$;
