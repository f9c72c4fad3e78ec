-- Webhooks as Kubernetes objects declare them. A secret reaches its owner in a Secret, after the row and
-- before the row is active.

-- Creates an object's webhook, inactive, in place of the one it has, which is deleted; a replacement is
-- exempt from the tenant's limit, which may be lower by now. Records p_rotate and p_reenable (null: not
-- requested) as handled. Answers created, or what create_webhook answers.
CREATE OR REPLACE FUNCTION declare_webhook(
    p_epoch bigint, p_uid uuid, p_id uuid, p_tenant uuid, p_url text, p_events text[], p_secret bytea,
    p_rotate text, p_reenable text, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_tenant tenant;
    v_former uuid := (SELECT row_id FROM resource WHERE uid = p_uid);
BEGIN
    PERFORM hold_epoch(p_epoch);
    SELECT * INTO v_tenant FROM tenant WHERE id = p_tenant FOR NO KEY UPDATE;
    IF NOT FOUND OR v_tenant.suspended OR v_tenant.removed_at IS NOT NULL THEN
        RETURN 'tenant_disabled';
    END IF;
    IF NOT EXISTS (SELECT FROM webhook WHERE id = v_former AND tenant = p_tenant)
       AND (SELECT count(*) FROM webhook WHERE tenant = p_tenant) >= v_tenant.webhook_limit THEN
        RETURN 'limit_reached';
    END IF;
    DELETE FROM webhook WHERE id = v_former;
    INSERT INTO webhook (id, tenant, url, events, secret, created_at, managed_by, active)
    VALUES (p_id, p_tenant, p_url, p_events, p_secret, p_now, 'kubernetes', false);
    UPDATE resource
       SET row_id = p_id, rotate_handled = coalesce(p_rotate, rotate_handled),
           reenable_handled = coalesce(p_reenable, reenable_handled)
     WHERE uid = p_uid;
    RETURN 'created';
END $$;
