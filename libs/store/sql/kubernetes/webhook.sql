-- Webhooks as Kubernetes objects declare them. A webhook's secret is delivered to its owner in a Secret, after the row is
-- created and before it becomes active.

-- Creates an object's webhook, inactive, in place of the one it has, which is deleted; a replacement is exempt from the
-- tenant's limit, which may be lower by now. Records p_rotate_requested and p_reenable_requested (null: not requested)
-- as handled. Answers created, or what create_webhook answers.
CREATE OR REPLACE FUNCTION declare_webhook(
    p_epoch bigint, p_uid uuid, p_id uuid, p_tenant uuid, p_url text, p_events text[], p_secret bytea,
    p_rotate_requested text, p_reenable_requested text, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_replaced uuid := (SELECT row_id FROM resource WHERE uid = p_uid);
    v_refusal  text;
BEGIN
    PERFORM lock_epoch(p_epoch, p_uid);
    v_refusal := check_limit(p_tenant, 'webhook', p_now);
    IF v_refusal = 'tenant_disabled' OR v_refusal IS NOT NULL
       AND NOT EXISTS (SELECT FROM webhook WHERE id = v_replaced AND tenant = p_tenant) THEN
        RETURN v_refusal;
    END IF;
    DELETE FROM webhook WHERE id = v_replaced;
    INSERT INTO webhook (id, tenant, url, events, secret, created_at, managed_by, active)
    VALUES (p_id, p_tenant, p_url, p_events, p_secret, p_now, 'kubernetes', false);
    UPDATE resource
       SET row_id = p_id, tenant = p_tenant, rotate_handled = coalesce(p_rotate_requested, rotate_handled),
           reenable_handled = coalesce(p_reenable_requested, reenable_handled)
     WHERE uid = p_uid;
    RETURN 'created';
END $$;

-- Deletes the webhook of an object that is deleted, and the object's row.
CREATE OR REPLACE FUNCTION release_webhook(p_epoch bigint, p_uid uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_epoch(p_epoch, p_uid);
    DELETE FROM webhook w USING resource r WHERE r.uid = p_uid AND w.id = r.row_id;
    PERFORM release_resource(p_epoch, p_uid);
END $$;
