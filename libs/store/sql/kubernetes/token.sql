-- API tokens as Kubernetes objects declare them. A token is delivered to its owner in a Secret, after the row is created
-- and before it becomes active.

-- Ends an object's token: it is revoked, or deleted if it never was active.
CREATE OR REPLACE FUNCTION end_managed_token(p_uid uuid, p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_token uuid := (SELECT row_id FROM resource WHERE uid = p_uid);
BEGIN
    DELETE FROM api_token WHERE id = v_token AND NOT active;
    UPDATE api_token SET revoked_at = p_now
     WHERE id = v_token AND active AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > p_now);
END $$;

-- Creates an object's token, inactive, in place of the one it has, which ends; a replacement is exempt from
-- the tenant's limit, which may be lower by now. Records p_rotate_requested (null: not requested) as handled.
-- Answers created, or what create_token answers.
CREATE OR REPLACE FUNCTION declare_token(
    p_epoch bigint, p_uid uuid, p_id uuid, p_tenant uuid, p_kind text, p_name text, p_hint text, p_hash bytea,
    p_expires_at timestamptz, p_rotate_requested text, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_refusal  text;
    v_replaces boolean;
BEGIN
    PERFORM lock_epoch(p_epoch, p_uid);
    v_refusal := check_limit(p_tenant, 'token', p_now);
    v_replaces := EXISTS (SELECT FROM resource r JOIN api_token k ON k.id = r.row_id
                           WHERE r.uid = p_uid AND k.tenant = p_tenant AND k.revoked_at IS NULL
                             AND (k.expires_at IS NULL OR k.expires_at > p_now));
    IF v_refusal = 'tenant_disabled' OR NOT v_replaces AND v_refusal IS NOT NULL THEN
        RETURN v_refusal;
    END IF;
    PERFORM end_managed_token(p_uid, p_now);
    INSERT INTO api_token (id, tenant, kind, name, hint, hash, created_by, created_at, expires_at, managed_by, active)
    VALUES (p_id, p_tenant, p_kind, p_name, p_hint, p_hash, 'kubernetes', p_now, p_expires_at, 'kubernetes', false);
    UPDATE resource SET row_id = p_id, tenant = p_tenant,
                        rotate_handled = coalesce(p_rotate_requested, rotate_handled)
     WHERE uid = p_uid;
    RETURN 'created';
END $$;

-- Ends the token of an object that is no longer accepted.
CREATE OR REPLACE FUNCTION revoke_managed_token(p_epoch bigint, p_uid uuid, p_now timestamptz) RETURNS void
LANGUAGE sql AS $$
    SELECT lock_epoch(p_epoch, p_uid);
    SELECT end_managed_token(p_uid, p_now);
    UPDATE resource SET row_id = NULL WHERE uid = p_uid;
$$;

-- Ends the token of an object that is deleted, with all that was made with its tokens over HTTP, and deletes the object's
-- row.
CREATE OR REPLACE FUNCTION release_token(p_epoch bigint, p_uid uuid, p_now timestamptz) RETURNS void LANGUAGE sql AS $$
    SELECT lock_epoch(p_epoch, p_uid);
    SELECT end_origin(p_uid, p_now);
    SELECT release_resource(p_epoch, p_uid);
$$;
