-- Webhooks: created.

-- Creates a webhook. Answers created, limit_reached, or tenant_disabled (suspended or removed).
CREATE OR REPLACE FUNCTION create_webhook(
    p_id uuid, p_tenant uuid, p_url text, p_events text[], p_secret bytea, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_refusal text := check_limit(p_tenant, 'webhook', p_now);
BEGIN
    IF v_refusal IS NOT NULL THEN RETURN v_refusal; END IF;
    INSERT INTO webhook (id, tenant, url, events, secret, created_at)
    VALUES (p_id, p_tenant, p_url, p_events, p_secret, p_now);
    RETURN 'created';
END $$;
