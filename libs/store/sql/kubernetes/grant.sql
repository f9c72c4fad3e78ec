-- Grants: a Tenant allows a namespace, and what the namespace's objects and their tokens made ends with that. Rows say by
-- their `origin` which object they come from, so nothing depends on whether the object is paused, or exists at all.

-- Ends the access to a tenant that objects gave: tokens are revoked, webhooks stop, custom domains and mailboxes are
-- inactive and keep their mail. Of what no object manages the password is unusable; it is active again when an object
-- adopts it, or when the tenant sets another password or verifies it over HTTP.
CREATE OR REPLACE FUNCTION end_origins(p_tenant uuid, p_origins uuid[], p_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- First, as in all that makes something of a tenant's: what these tokens are making is found, or refused.
    PERFORM FROM tenant WHERE id = p_tenant FOR NO KEY UPDATE;
    -- Of a token that never was active nobody knows.
    DELETE FROM api_token WHERE tenant = p_tenant AND origin = ANY (p_origins) AND NOT active;
    -- Makers first, as in end_made_tokens.
    PERFORM FROM api_token k WHERE k.tenant = p_tenant AND k.origin = ANY (p_origins) AND k.revoked_at IS NULL
      ORDER BY k.created_at, k.id FOR NO KEY UPDATE;
    UPDATE api_token SET revoked_at = p_now
     WHERE tenant = p_tenant AND origin = ANY (p_origins) AND revoked_at IS NULL;
    DELETE FROM webhook WHERE tenant = p_tenant AND origin = ANY (p_origins) AND managed_by = 'kubernetes';
    UPDATE webhook SET status = 'disabled'
     WHERE tenant = p_tenant AND origin = ANY (p_origins) AND status = 'active';
    PERFORM FROM domain d WHERE d.tenant = p_tenant AND d.origin = ANY (p_origins) AND d.removed_at IS NULL
      ORDER BY d.id FOR NO KEY UPDATE;
    UPDATE domain d
       SET active = false, verify_status = 'pending', failure_reason = NULL, serves = false, next_check_at = NULL,
           claimed_until = NULL, origin = CASE d.managed_by WHEN 'kubernetes' THEN d.origin END
     WHERE d.tenant = p_tenant AND d.origin = ANY (p_origins) AND d.removed_at IS NULL
       AND (d.active OR d.managed_by = 'api');
    PERFORM FROM mailbox b WHERE b.tenant = p_tenant AND b.origin = ANY (p_origins) AND b.removed_at IS NULL
      ORDER BY b.id FOR NO KEY UPDATE;
    UPDATE mailbox b
       SET active = false, password_epoch = b.password_epoch + 1,
           password_hash = CASE b.managed_by WHEN 'kubernetes' THEN b.password_hash ELSE '!' END,
           origin = CASE b.managed_by WHEN 'kubernetes' THEN b.origin END
     WHERE b.tenant = p_tenant AND b.origin = ANY (p_origins) AND b.removed_at IS NULL
       AND (b.active OR b.managed_by = 'api');
END $$;

-- Ends all access that one object gave, at whichever tenant.
CREATE OR REPLACE FUNCTION end_origin(p_origin uuid, p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_tenant uuid;
BEGIN
    FOR v_tenant IN
        SELECT k.tenant FROM api_token k WHERE k.origin = p_origin
        UNION SELECT w.tenant FROM webhook w WHERE w.origin = p_origin
        UNION SELECT d.tenant FROM domain d WHERE d.origin = p_origin
        UNION SELECT b.tenant FROM mailbox b WHERE b.origin = p_origin AND b.tenant IS NOT NULL
        ORDER BY 1
    LOOP
        PERFORM end_origins(v_tenant, ARRAY[p_origin], p_now);
    END LOOP;
END $$;

-- Deletes origins whose object is released, and that give no access any more.
CREATE OR REPLACE FUNCTION delete_ended_origins(p_origins uuid[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM origin o
     WHERE o.uid = ANY (p_origins)
       AND NOT EXISTS (SELECT FROM resource r WHERE r.uid = o.uid)
       AND NOT EXISTS (SELECT FROM api_token k WHERE k.origin = o.uid AND k.revoked_at IS NULL)
       AND NOT EXISTS (SELECT FROM webhook w WHERE w.origin = o.uid AND w.status = 'active')
       AND NOT EXISTS (SELECT FROM domain d WHERE d.origin = o.uid AND d.removed_at IS NULL)
       AND NOT EXISTS (SELECT FROM mailbox b WHERE b.origin = o.uid AND b.removed_at IS NULL)
$$;

-- Ends what a namespace (p_namespace_uid: null where it was not recorded) of a cluster was granted at a tenant, in one
-- transaction: whatever its objects say, and whether they exist. p_uid: the Tenant, null if it is gone.
CREATE OR REPLACE FUNCTION end_grant(
    p_epoch bigint, p_uid uuid, p_tenant uuid, p_cluster uuid, p_namespace text, p_namespace_uid uuid, p_now timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_origins CONSTANT uuid[] := ARRAY(
        SELECT o.uid FROM origin o
         WHERE o.cluster = p_cluster AND o.namespace = p_namespace
           AND o.namespace_uid IS NOT DISTINCT FROM p_namespace_uid);
BEGIN
    PERFORM lock_epoch(p_epoch, p_uid);
    PERFORM end_origins(p_tenant, v_origins, p_now);
    PERFORM delete_ended_origins(v_origins);
END $$;

-- Whether one of the Tenants p_granting (uids) declares the tenant, and it is not suspended.
CREATE OR REPLACE FUNCTION is_granted(p_tenant uuid, p_granting uuid[]) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM resource r JOIN tenant t ON t.id = r.row_id
                    WHERE r.uid = ANY (p_granting) AND t.id = p_tenant AND NOT t.suspended AND t.removed_at IS NULL)
$$;

-- What becomes of the custom domain or mailbox of a released object at a tenant. removed; retained (p_retained), as its
-- namespace was granted it; or revoked: without the grant (p_granting: as in is_granted), whatever p_retained says, all
-- access that the object gave has ended.
CREATE OR REPLACE FUNCTION end_of_object(
    p_tenant uuid, p_uid uuid, p_retained boolean, p_granting uuid[], p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF is_granted(p_tenant, p_granting) THEN
        RETURN CASE WHEN p_retained THEN 'retained' ELSE 'removed' END;
    END IF;
    PERFORM end_origins(p_tenant, ARRAY[p_uid], p_now);
    RETURN 'revoked';
END $$;

-- Records that an object no longer exists although it was not released. Its row is kept for a day; a credential ends now.
CREATE OR REPLACE FUNCTION record_missing(p_epoch bigint, p_uid uuid, p_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_epoch(p_epoch, p_uid);
    IF EXISTS (SELECT FROM resource r WHERE r.uid = p_uid AND r.kind IN ('ApiToken', 'Webhook', 'Mailbox')) THEN
        PERFORM end_origin(p_uid, p_now);
    END IF;
    UPDATE resource SET missing_since = p_now WHERE uid = p_uid AND missing_since IS NULL;
END $$;
