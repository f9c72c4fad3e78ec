-- What takes the place of something else needs no further place, and an object that is made again finds
-- what its predecessor left. Business time is always an argument.

-- Objects of one name -------------------------------------------------------------

CREATE INDEX resource_name ON resource (cluster, kind, name);
DROP INDEX resource_kind;

-- Tokens ------------------------------------------------------------------------------

-- Makes an object's token, inactive, in place of the one it has, which ends; that is not held to the
-- tenant's limit, which may be lower by now. Notes p_asked (null: nobody asked) as carried out. Answers
-- created, or what create_token answers.
CREATE OR REPLACE FUNCTION declare_token(
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

-- Webhooks ----------------------------------------------------------------------------

-- Makes an object's webhook, inactive, in place of the one it has, which is deleted; that is not held to
-- the tenant's limit, which may be lower by now. Notes what was asked for (null: nothing) as carried
-- out. Answers created, or what create_webhook answers.
CREATE OR REPLACE FUNCTION declare_webhook(
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

-- System domains ----------------------------------------------------------------------

-- Whether an object is another one of the same cluster, kind, namespace and name: it vanished, since two
-- can't be there at once.
CREATE FUNCTION is_predecessor(p_former resource, p_uid uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM resource r
                    WHERE r.uid = p_uid AND r.uid <> p_former.uid AND r.cluster = p_former.cluster
                      AND r.kind = p_former.kind AND r.name = p_former.name
                      AND r.namespace IS NOT DISTINCT FROM p_former.namespace)
$$;

-- Makes an object's system domain serve as the object says, and the default one if p_default; one
-- that serves and has no object is taken over, and so is that of an object which vanished and was made
-- again. Answers created, adopted, kept, taken (by another object) or custom_domain (one is in the way).
CREATE OR REPLACE FUNCTION declare_system_domain(
    p_epoch bigint, p_uid uuid, p_id uuid, p_name text, p_shared_inboxes boolean, p_sort_order integer,
    p_default boolean, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_id     uuid;
    v_met    text;
    v_answer text := 'kept';
BEGIN
    PERFORM hold_epoch(p_epoch);
    SELECT a.o_id, a.o_met INTO v_id, v_met
      FROM add_system_domain(p_id, p_name, p_shared_inboxes, p_sort_order, p_now) a;
    IF v_met IS NOT NULL THEN
        RETURN 'custom_domain';
    ELSIF v_id IS NOT NULL THEN
        v_answer := 'created';
    ELSE
        SELECT d.id INTO STRICT v_id FROM domain d
         WHERE d.name = p_name AND d.tenant IS NULL AND d.serves FOR NO KEY UPDATE;
    END IF;
    IF EXISTS (SELECT FROM resource r
                WHERE r.thing = v_id AND r.uid <> p_uid AND NOT is_predecessor(r, p_uid)) THEN
        RETURN 'taken';
    ELSIF v_answer = 'kept' AND NOT is_bound(v_id) THEN
        v_answer := 'adopted';
    END IF;
    UPDATE domain
       SET managed_by = 'kubernetes', shared_inboxes = p_shared_inboxes, sort_order = p_sort_order
     WHERE id = v_id
       AND (managed_by, shared_inboxes, sort_order) IS DISTINCT FROM ('kubernetes', p_shared_inboxes, p_sort_order);
    IF p_default THEN
        PERFORM set_default_system_domain(p_name);
    END IF;
    DELETE FROM resource WHERE thing = v_id AND uid <> p_uid;
    PERFORM bind_resource(p_uid, v_id);
    RETURN v_answer;
END $$;
