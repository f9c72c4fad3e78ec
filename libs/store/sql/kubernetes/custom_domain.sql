-- Custom domains as Kubernetes objects declare them.

-- The custom domain of an object, read while its operator leads.
CREATE OR REPLACE FUNCTION domain_of_object(p_epoch bigint, p_uid uuid)
RETURNS TABLE (id uuid, tenant uuid, active boolean) LANGUAGE sql AS $$
    SELECT lock_epoch(p_epoch, p_uid);
    SELECT d.id, d.tenant, d.active FROM resource r JOIN domain d ON d.id = r.row_id
     WHERE r.uid = p_uid AND d.removed_at IS NULL
$$;

-- Creates an object's custom domain; one that was deactivated becomes pending again. Answers created,
-- adopted (p_adopt: one that the tenant created over HTTP), existing, restored, managed_by_another, not_adopted (it
-- exists and may not be adopted), tenant_changed (it is another tenant's), or what create_custom_domain answers.
CREATE OR REPLACE FUNCTION declare_custom_domain(
    p_epoch bigint, p_uid uuid, p_id uuid, p_tenant uuid, p_name text, p_token text, p_adopt boolean,
    p_installation_names text[], p_deadline timestamptz, p_next_check_at timestamptz, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_id     uuid;
    v_tenant uuid;
    v_active boolean;
    v_answer text;
BEGIN
    SELECT d.id, d.tenant, d.active INTO v_id, v_tenant, v_active FROM domain_of_object(p_epoch, p_uid) d;
    IF v_id IS NOT NULL THEN
        IF v_tenant <> p_tenant THEN
            RETURN 'tenant_changed';
        ELSIF v_active THEN
            RETURN 'existing';
        END IF;
        UPDATE domain SET active = true, verify_status = 'pending', failure_reason = NULL, failed_checks = 0,
                          deadline = p_deadline, next_check_at = p_now
         WHERE id = v_id;
        RETURN 'restored';
    END IF;
    SELECT d.id INTO v_id FROM domain d
     WHERE d.tenant = p_tenant AND d.name = p_name AND d.removed_at IS NULL FOR NO KEY UPDATE;
    IF FOUND THEN
        IF EXISTS (SELECT FROM resource WHERE row_id = v_id) THEN
            RETURN 'managed_by_another';
        ELSIF NOT p_adopt THEN
            RETURN 'not_adopted';
        END IF;
        UPDATE domain
           SET managed_by = 'kubernetes', origin = p_uid, active = true,
               deadline = CASE WHEN active THEN deadline ELSE p_deadline END,
               next_check_at = CASE WHEN active THEN next_check_at ELSE p_now END
         WHERE id = v_id;
        UPDATE resource SET row_id = v_id, tenant = p_tenant WHERE uid = p_uid;
        RETURN 'adopted';
    END IF;
    v_answer := create_custom_domain(p_id, p_tenant, p_name, p_token, 'kubernetes', p_installation_names, p_deadline,
                                     p_next_check_at, p_now);
    IF v_answer = 'created' THEN
        UPDATE resource SET row_id = p_id, tenant = p_tenant WHERE uid = p_uid;
    END IF;
    RETURN v_answer;
END $$;

-- Releases an object's domain: it is removed with its mailboxes and mail, or its tenant manages it over HTTP
-- (p_retained), active if it was. Without the grant it is the tenant's and inactive (end_of_object).
CREATE OR REPLACE FUNCTION release_custom_domain(
    p_epoch bigint, p_uid uuid, p_retained boolean, p_granting uuid[], p_now timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_id     uuid;
    v_tenant uuid;
    v_end    text;
BEGIN
    SELECT d.id, d.tenant INTO v_id, v_tenant FROM domain_of_object(p_epoch, p_uid) d;
    v_end := end_of_object(v_tenant, p_uid, p_retained, p_granting, p_now);
    UPDATE domain SET managed_by = CASE v_end WHEN 'removed' THEN managed_by ELSE 'api' END,
                      origin = CASE v_end WHEN 'retained' THEN origin END
     WHERE id = v_id;
    PERFORM release_resource(p_epoch, p_uid);
    IF v_end = 'removed' THEN
        PERFORM remove_custom_domain(v_id, v_tenant, 'kubernetes', p_now);
    END IF;
END $$;
