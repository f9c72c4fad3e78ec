-- Tokens and webhooks as objects declare them. What is secret of them reaches its owner in a Secret,
-- after the row and before the row is active.

ALTER TABLE api_token ADD COLUMN active boolean NOT NULL DEFAULT true;
ALTER TABLE webhook ADD COLUMN active boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN api_token.active IS 'false: its owner does not have it yet, and nobody is let in by it';
COMMENT ON COLUMN webhook.active IS 'false: its owner does not have its secret yet; events wait';

-- Changes that objects show, beside those of rights. Of tokens all are noted already.
CREATE TRIGGER webhook_mirrored AFTER UPDATE OF status ON webhook
    FOR EACH ROW WHEN (NEW.managed_by = 'kubernetes' AND OLD.status IS DISTINCT FROM NEW.status)
    EXECUTE FUNCTION note_change();
CREATE TRIGGER webhook_gone AFTER DELETE ON webhook
    FOR EACH ROW WHEN (OLD.managed_by = 'kubernetes') EXECUTE FUNCTION note_change();

-- Tokens ------------------------------------------------------------------------------

-- Ends an object's token: it is revoked, or deleted if nobody ever had it.
CREATE FUNCTION end_declared_token(p_uid uuid, p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_token uuid := (SELECT thing FROM resource WHERE uid = p_uid);
BEGIN
    DELETE FROM api_token WHERE id = v_token AND NOT active;
    UPDATE api_token SET revoked_at = p_now
     WHERE id = v_token AND active AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > p_now);
END $$;

-- Makes an object's token, inactive, in place of the one it has, which ends; that is not held to the
-- tenant's limit, which may be lower by now. Notes p_asked (null: nobody asked) as carried out. Answers
-- created, or what create_token answers.
CREATE FUNCTION declare_token(
    p_epoch bigint, p_uid uuid, p_id uuid, p_tenant uuid, p_kind text, p_name text, p_hint text, p_hash bytea,
    p_expires_at timestamptz, p_asked text, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_tenant tenant;
BEGIN
    PERFORM hold_epoch(p_epoch);
    SELECT * INTO v_tenant FROM tenant WHERE id = p_tenant FOR NO KEY UPDATE;
    IF NOT FOUND OR v_tenant.suspended OR v_tenant.removed_at IS NOT NULL THEN
        RETURN 'tenant_disabled';
    END IF;
    IF NOT EXISTS (SELECT FROM resource r JOIN api_token k ON k.id = r.thing
                    WHERE r.uid = p_uid AND k.tenant = p_tenant AND k.revoked_at IS NULL
                      AND (k.expires_at IS NULL OR k.expires_at > p_now))
       AND (SELECT count(*) FROM api_token
             WHERE tenant = p_tenant AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > p_now))
           >= v_tenant.token_limit THEN
        RETURN 'limit_reached';
    END IF;
    PERFORM end_declared_token(p_uid, p_now);
    INSERT INTO api_token (id, tenant, kind, name, hint, hash, created_by, created_at, expires_at, managed_by, active)
    VALUES (p_id, p_tenant, p_kind, p_name, p_hint, p_hash, 'kubernetes', p_now, p_expires_at, 'kubernetes', false);
    UPDATE resource SET thing = p_id, rotate_handled = coalesce(p_asked, rotate_handled) WHERE uid = p_uid;
    RETURN 'created';
END $$;

-- Lets in whoever has the token, if it is the object's still.
CREATE FUNCTION activate_token(p_epoch bigint, p_uid uuid, p_id uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    UPDATE api_token k SET active = true FROM resource r WHERE r.uid = p_uid AND r.thing = p_id AND k.id = p_id;
END $$;

CREATE FUNCTION set_token_expiry(p_epoch bigint, p_uid uuid, p_expires_at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    UPDATE api_token k SET expires_at = p_expires_at FROM resource r WHERE r.uid = p_uid AND k.id = r.thing;
END $$;

-- Ends the token of an object that is not accepted any more.
CREATE FUNCTION withdraw_token(p_epoch bigint, p_uid uuid, p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    PERFORM end_declared_token(p_uid, p_now);
    PERFORM bind_resource(p_uid, NULL);
END $$;

-- Ends the token of an object that is deleted.
CREATE FUNCTION release_declared_token(p_epoch bigint, p_uid uuid, p_now timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    PERFORM end_declared_token(p_uid, p_now);
    DELETE FROM resource WHERE uid = p_uid;
END $$;

-- Webhooks ----------------------------------------------------------------------------

-- Makes an object's webhook, inactive, in place of the one it has, which is deleted; that is not held to
-- the tenant's limit, which may be lower by now. Notes what was asked for (null: nothing) as carried
-- out. Answers created, or what create_webhook answers.
CREATE FUNCTION declare_webhook(
    p_epoch bigint, p_uid uuid, p_id uuid, p_tenant uuid, p_url text, p_events text[], p_secret bytea,
    p_rotate text, p_reenable text, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_tenant tenant;
    v_former uuid := (SELECT thing FROM resource WHERE uid = p_uid);
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
       SET thing = p_id, rotate_handled = coalesce(p_rotate, rotate_handled),
           reenable_handled = coalesce(p_reenable, reenable_handled)
     WHERE uid = p_uid;
    RETURN 'created';
END $$;

-- Sends to a webhook whose owner has its secret, if it is the object's still.
CREATE FUNCTION activate_webhook(p_epoch bigint, p_uid uuid, p_id uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    UPDATE webhook w SET active = true FROM resource r WHERE r.uid = p_uid AND r.thing = p_id AND w.id = p_id;
END $$;

CREATE FUNCTION set_webhook_url(p_epoch bigint, p_uid uuid, p_url text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    UPDATE webhook w SET url = p_url FROM resource r WHERE r.uid = p_uid AND w.id = r.thing;
END $$;

-- Gives an object's webhook another secret, which its owner does not have yet, and forgets its
-- failures, those of attempts under way included.
CREATE FUNCTION rotate_declared_webhook(
    p_epoch bigint, p_uid uuid, p_secret bytea, p_asked text, p_now timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    UPDATE webhook w SET secret = p_secret, active = false, failure_count = 0, failed_at = p_now, due_at = '-infinity'
      FROM resource r WHERE r.uid = p_uid AND w.id = r.thing;
    UPDATE resource SET rotate_handled = p_asked WHERE uid = p_uid;
END $$;

-- Notes that there was nothing to be enabled again.
CREATE FUNCTION disregard_reenable(p_epoch bigint, p_uid uuid, p_asked text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    UPDATE resource SET reenable_handled = p_asked WHERE uid = p_uid;
END $$;

-- Deletes the webhook of an object that is not accepted any more.
CREATE FUNCTION withdraw_webhook(p_epoch bigint, p_uid uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    DELETE FROM webhook w USING resource r WHERE r.uid = p_uid AND w.id = r.thing;
    PERFORM bind_resource(p_uid, NULL);
END $$;

-- Deletes the webhook of an object that is deleted.
CREATE FUNCTION release_declared_webhook(p_epoch bigint, p_uid uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    DELETE FROM webhook w USING resource r WHERE r.uid = p_uid AND w.id = r.thing;
    DELETE FROM resource WHERE uid = p_uid;
END $$;
