-- Mailboxes as Kubernetes objects declare them. A password is delivered to its owner in a Secret, after the row is
-- changed and before it becomes active.

-- The mailbox of an object, read while its operator leads.
CREATE OR REPLACE FUNCTION mailbox_of_object(p_epoch bigint, p_uid uuid) RETURNS TABLE (id uuid, tenant uuid)
LANGUAGE sql AS $$
    SELECT lock_epoch(p_epoch, p_uid);
    SELECT b.id, b.tenant FROM resource r JOIN mailbox b ON b.id = r.row_id WHERE r.uid = p_uid AND b.removed_at IS NULL
$$;

-- Gives an object's mailbox a password that is not yet delivered to its owner, so it is inactive; creates
-- the mailbox first where the object has none, or adopts it (p_adopt: one that the tenant created over
-- HTTP). Records p_rotate_requested (null: not requested) as handled. Answers existing, created, adopted,
-- managed_by_another, not_adopted (it exists and may not be adopted), tenant_changed (it is another tenant's), or what
-- create_mailbox answers.
CREATE OR REPLACE FUNCTION declare_mailbox(
    p_epoch bigint, p_uid uuid, p_id uuid, p_tenant uuid, p_domain text, p_local_part text,
    p_password_hash text, p_adopt boolean, p_rotate_requested text, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_id     uuid;
    v_tenant uuid;
    v_domain uuid;
    v_answer text := 'existing';
BEGIN
    SELECT b.id, b.tenant INTO v_id, v_tenant FROM mailbox_of_object(p_epoch, p_uid) b;
    IF v_id IS NOT NULL AND v_tenant IS DISTINCT FROM p_tenant THEN
        RETURN 'tenant_changed';
    ELSIF v_id IS NULL THEN
        SELECT d.id INTO v_domain FROM domain d
         WHERE d.name = p_domain AND d.serves AND (d.tenant IS NULL OR d.tenant = p_tenant);
        IF NOT FOUND THEN
            RETURN 'no_such_domain';
        END IF;
        SELECT b.id INTO v_id FROM mailbox b
         WHERE b.domain = v_domain AND b.local_part = p_local_part AND b.tenant = p_tenant AND b.removed_at IS NULL
           FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            v_answer := create_mailbox(p_id, v_domain, p_local_part, p_tenant, NULL, NULL, p_password_hash,
                                       'kubernetes', false, p_now);
            IF v_answer <> 'created' THEN
                RETURN v_answer;
            END IF;
            v_id := p_id;
        ELSIF EXISTS (SELECT FROM resource WHERE row_id = v_id) THEN
            RETURN 'managed_by_another';
        ELSIF NOT p_adopt THEN
            RETURN 'not_adopted';
        ELSE
            v_answer := 'adopted';
        END IF;
    END IF;
    IF v_answer <> 'created' THEN
        UPDATE mailbox
           SET managed_by = 'kubernetes', origin = p_uid, active = false, password_hash = p_password_hash,
               password_epoch = password_epoch + 1
         WHERE id = v_id AND removed_at IS NULL;
    END IF;
    UPDATE resource SET row_id = v_id, tenant = p_tenant,
                        rotate_handled = coalesce(p_rotate_requested, rotate_handled)
     WHERE uid = p_uid;
    RETURN v_answer;
END $$;

-- Releases an object's mailbox: it is removed with its mail, or its tenant manages it over HTTP (p_retained), active if it
-- was. Without the grant it is the tenant's, inactive and with an unusable password (end_of_object).
CREATE OR REPLACE FUNCTION release_mailbox(
    p_epoch bigint, p_uid uuid, p_retained boolean, p_granting uuid[], p_now timestamptz, p_hold_days integer
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_id     uuid;
    v_tenant uuid;
    v_end    text;
BEGIN
    SELECT b.id, b.tenant INTO v_id, v_tenant FROM mailbox_of_object(p_epoch, p_uid) b;
    v_end := end_of_object(v_tenant, p_uid, p_retained, p_granting, p_now);
    UPDATE mailbox
       SET password_hash = CASE v_end WHEN 'revoked' THEN '!' ELSE password_hash END,
           managed_by = CASE v_end WHEN 'removed' THEN managed_by ELSE 'api' END,
           origin = CASE v_end WHEN 'retained' THEN origin END
     WHERE id = v_id;
    PERFORM release_resource(p_epoch, p_uid);
    IF v_end = 'removed' THEN
        PERFORM remove_mailbox(v_id, 'kubernetes', p_now, p_hold_days);
    END IF;
END $$;
