-- Tenants as Kubernetes objects declare them.

-- Whether an object may have the tenant p_adopt: it is not removed, no object has it, and it is not the platform's.
CREATE OR REPLACE FUNCTION is_adoptable(p_adopt uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM tenant t
                    WHERE t.id = p_adopt AND t.removed_at IS NULL
                      AND t.id <> '00000000-0000-7000-8000-000000000001'
                      AND NOT EXISTS (SELECT FROM resource r WHERE r.row_id = t.id))
$$;

-- Whether the tenant of an object gives way to p_adopt, which is adoptable: it has nothing, so nothing is lost with it.
CREATE OR REPLACE FUNCTION gives_way(p_id uuid, p_adopt uuid, p_now timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT p_id <> p_adopt AND is_adoptable(p_adopt)
       AND NOT EXISTS (SELECT FROM tenant t WHERE t.id = p_id AND t.is_sink)
       AND NOT EXISTS (SELECT FROM mailbox b WHERE b.tenant = p_id AND b.removed_at IS NULL)
       AND NOT EXISTS (SELECT FROM domain d WHERE d.tenant = p_id AND d.removed_at IS NULL)
       AND NOT EXISTS (SELECT FROM webhook w WHERE w.tenant = p_id)
       AND NOT EXISTS (SELECT FROM api_token k WHERE k.tenant = p_id AND k.revoked_at IS NULL
                                                 AND (k.expires_at IS NULL OR k.expires_at > p_now))
$$;

-- Makes an object's tenant match the object; creates it first where the object has none, or adopts p_adopt. A tenant that
-- has nothing is removed in favour of p_adopt.
-- Answers created, adopted, existing, name_taken or not_adoptable.
CREATE OR REPLACE FUNCTION declare_tenant(
    p_epoch bigint, p_uid uuid, p_id uuid, p_name text, p_adopt uuid, p_suspended boolean,
    p_retention_hours smallint, p_mailboxes integer, p_domains integer, p_webhooks integer, p_tokens integer,
    p_mailbox_bytes bigint, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_id     uuid;
    v_answer text := 'existing';
BEGIN
    PERFORM lock_epoch(p_epoch, p_uid);
    SELECT t.id INTO v_id FROM resource r JOIN tenant t ON t.id = r.row_id
     WHERE r.uid = p_uid AND t.removed_at IS NULL FOR NO KEY UPDATE OF t;
    IF gives_way(v_id, p_adopt, p_now) THEN
        PERFORM remove_tenant(v_id, p_now, 0);
        v_id := NULL;
    END IF;
    IF v_id IS NULL THEN
        IF EXISTS (SELECT FROM tenant WHERE name = p_name AND id IS DISTINCT FROM p_adopt) THEN
            RETURN 'name_taken';
        ELSIF p_adopt IS NULL THEN
            INSERT INTO tenant (id, name, managed_by, retention_hours, classes, mailbox_limit, domain_limit,
                                webhook_limit, token_limit, mailbox_bytes, created_at)
            VALUES (p_id, p_name, 'kubernetes', p_retention_hours, ARRAY[p_retention_hours], p_mailboxes,
                    p_domains, p_webhooks, p_tokens, p_mailbox_bytes, p_now);
            v_id := p_id;
            v_answer := 'created';
        ELSE
            UPDATE tenant t SET name = p_name, managed_by = 'kubernetes'
             WHERE t.id = p_adopt AND is_adoptable(p_adopt)
            RETURNING t.id INTO v_id;
            IF NOT FOUND THEN
                RETURN 'not_adoptable';
            END IF;
            v_answer := 'adopted';
        END IF;
        UPDATE resource SET row_id = v_id WHERE uid = p_uid;
    END IF;
    UPDATE tenant t
       SET suspended = p_suspended, retention_hours = p_retention_hours,
           classes = CASE WHEN p_retention_hours = ANY (t.classes) THEN t.classes
                          ELSE array_append(t.classes, p_retention_hours) END,
           mailbox_limit = p_mailboxes, domain_limit = p_domains, webhook_limit = p_webhooks,
           token_limit = p_tokens, mailbox_bytes = p_mailbox_bytes
     WHERE t.id = v_id
       AND (t.suspended, t.retention_hours, t.mailbox_limit, t.domain_limit, t.webhook_limit, t.token_limit,
            t.mailbox_bytes)
           IS DISTINCT FROM (p_suspended, p_retention_hours, p_mailboxes, p_domains, p_webhooks, p_tokens,
            p_mailbox_bytes);
    RETURN v_answer;
END $$;

-- Releases an object's tenant: it is removed, or suspended under another name, so that its own is free
-- (p_retained). What it granted ends: it does not come back with a Tenant that adopts the tenant.
CREATE OR REPLACE FUNCTION release_tenant(p_epoch bigint, p_uid uuid, p_retained boolean, p_now timestamptz,
                                          p_hold_days integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_id uuid := release_resource(p_epoch, p_uid);
BEGIN
    IF p_retained THEN
        PERFORM end_origins(v_id, ARRAY(
            SELECT k.origin FROM api_token k WHERE k.tenant = v_id AND k.origin IS NOT NULL
            UNION SELECT w.origin FROM webhook w WHERE w.tenant = v_id AND w.origin IS NOT NULL
            UNION SELECT d.origin FROM domain d WHERE d.tenant = v_id AND d.origin IS NOT NULL
            UNION SELECT b.origin FROM mailbox b WHERE b.tenant = v_id AND b.origin IS NOT NULL), p_now);
        UPDATE tenant SET suspended = true, managed_by = 'api', name = name || '@' || id
         WHERE id = v_id AND removed_at IS NULL;
    ELSE
        PERFORM remove_tenant(v_id, p_now, p_hold_days);
    END IF;
END $$;
