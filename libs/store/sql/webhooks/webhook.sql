-- Webhooks: created.

-- Creates a webhook. Answers created, limit_reached, or tenant_disabled (suspended or removed).
CREATE OR REPLACE FUNCTION create_webhook(
    p_id uuid, p_tenant uuid, p_url text, p_events text[], p_secret bytea, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_tenant tenant := lock_tenant(p_tenant);
BEGIN
    IF v_tenant.id IS NULL THEN
        RETURN 'tenant_disabled';
    ELSIF (SELECT count(*) FROM webhook WHERE tenant = p_tenant) >= v_tenant.webhook_limit THEN
        RETURN 'limit_reached';
    END IF;
    INSERT INTO webhook (id, tenant, url, events, secret, created_at)
    VALUES (p_id, p_tenant, p_url, p_events, p_secret, p_now);
    RETURN 'created';
END $$;
