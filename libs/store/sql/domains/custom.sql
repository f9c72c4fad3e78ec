-- Custom domains: created, verified and removed. For the order of locks see name.sql.

-- Creates a pending custom domain. Answers created, tenant_disabled, overlaps_system_domain or limit_reached;
-- violates domain_of_tenant where the tenant has it already.
CREATE OR REPLACE FUNCTION create_custom_domain(
    p_id uuid, p_tenant uuid, p_name text, p_token text, p_managed_by text, p_installation_names text[],
    p_deadline timestamptz, p_next_check_at timestamptz, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_refusal text := check_limit(p_tenant, 'domain', p_now);
BEGIN
    IF v_refusal = 'tenant_disabled' THEN
        RETURN v_refusal;
    END IF;
    PERFORM lock_domain_names();
    IF overlaps_system_domain(p_name, p_installation_names) THEN
        RETURN 'overlaps_system_domain';
    ELSIF v_refusal IS NOT NULL THEN
        RETURN v_refusal;
    END IF;
    INSERT INTO domain (id, name, tenant, serves, shared_inboxes, verify_status, verify_token, deadline,
                        next_check_at, managed_by, created_at)
    VALUES (p_id, p_name, p_tenant, false, false, 'pending', p_token, p_deadline,
            p_next_check_at, p_managed_by, p_now);
    RETURN 'created';
END $$;

-- Verifies a custom domain, with all that follows for other domains of the name. p_displaced: the domain that serves the
-- name, if the name servers no longer have its TXT record; only that domain loses the name. Answers verified,
-- transferred, held_by_incumbent (another domain serves the name), overlaps_system_domain or removed.
CREATE OR REPLACE FUNCTION verify_custom_domain(
    p_id uuid, p_displaced uuid, p_installation_names text[], p_next_check_at timestamptz, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_name   text;
    v_token  text;
    v_status text;
    v_incumbent uuid;
    v_former uuid[];
BEGIN
    PERFORM lock_domain_names();
    SELECT d.name, d.verify_token INTO v_name, v_token FROM domain d
     WHERE d.id = p_id AND d.tenant IS NOT NULL AND d.removed_at IS NULL AND d.active;
    IF NOT FOUND THEN
        RETURN 'removed';
    END IF;
    IF overlaps_system_domain(v_name, p_installation_names) THEN
        RETURN 'overlaps_system_domain';
    END IF;
    PERFORM FROM domain d WHERE d.name = v_name AND d.tenant IS NOT NULL AND d.removed_at IS NULL
      ORDER BY d.id FOR NO KEY UPDATE;
    SELECT d.verify_status INTO v_status FROM domain d WHERE d.id = p_id AND d.removed_at IS NULL;
    IF NOT FOUND THEN
        RETURN 'removed';
    ELSIF v_status = 'verified' THEN
        RETURN 'verified';
    END IF;
    SELECT d.id INTO v_incumbent FROM domain d WHERE d.name = v_name AND d.serves;
    IF v_incumbent IS NOT NULL AND v_incumbent IS DISTINCT FROM p_displaced THEN
        RETURN 'held_by_incumbent';
    END IF;

    UPDATE domain d
       SET verify_status = 'failed', failure_reason = 'claimed_by_another', serves = false,
           next_check_at = NULL, claimed_until = NULL
     WHERE d.name = v_name AND d.id <> p_id AND d.tenant IS NOT NULL AND d.removed_at IS NULL
       AND d.verify_status <> 'failed';
    -- Every name server that voted has the record of the new domain in place of the incumbent's.
    UPDATE domain d
       SET txt_ok = false, txt_result = 'mismatch', txt_seen = ARRAY['tempmail-verify=' || v_token]
     WHERE d.id = v_incumbent;
    -- Every domain that served the name before loses what is left under it.
    v_former := ARRAY(SELECT d.id FROM domain d
                       WHERE d.name = v_name AND d.id <> p_id AND d.tenant IS NOT NULL
                         AND d.verified_at IS NOT NULL AND d.removed_at IS NULL ORDER BY d.id);
    PERFORM remove_mailboxes_of_domain(f.id, p_now) FROM unnest(v_former) AS f (id);
    UPDATE domain d
       SET verify_status = 'verified', failure_reason = NULL, serves = true, verified_at = p_now,
           txt_ok = true, txt_result = 'found', txt_seen = '{}', mx_ok = true, mx_result = 'found', mx_seen = '{}',
           failed_checks = 0, next_check_at = p_next_check_at, claimed_until = NULL
     WHERE d.id = p_id;
    IF cardinality(v_former) > 0 THEN
        -- They may be verified again, and have mail then.
        PERFORM purge_owner(f.id, s.seq, p_now)
           FROM (SELECT wait_for_mail() AS seq) s CROSS JOIN unnest(v_former) AS f (id);
    END IF;
    RETURN CASE WHEN v_incumbent IS NULL THEN 'verified' ELSE 'transferred' END;
END $$;

-- Removes a custom domain that p_managed_by manages: hidden, refused and empty at once. The row stays
-- until its mail is deleted, because the deletion reads from it whose usage to lower. Answers removed,
-- managed or not_found.
CREATE OR REPLACE FUNCTION remove_custom_domain(p_id uuid, p_tenant uuid, p_managed_by text, p_now timestamptz)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_managed_by text;
BEGIN
    SELECT d.managed_by INTO v_managed_by FROM domain d
     WHERE d.id = p_id AND d.tenant = p_tenant AND d.removed_at IS NULL;
    IF NOT FOUND THEN
        RETURN 'not_found';
    ELSIF v_managed_by <> p_managed_by THEN
        RETURN 'managed';
    END IF;
    UPDATE domain d SET removed_at = p_now, serves = false, next_check_at = NULL, claimed_until = NULL
     WHERE d.id = p_id AND d.removed_at IS NULL;
    IF NOT FOUND THEN
        RETURN 'not_found';
    END IF;
    PERFORM remove_mailboxes_of_domain(p_id, p_now);
    PERFORM purge_removed(p_id, p_now);
    PERFORM wait_for_mail();
    RETURN 'removed';
END $$;
