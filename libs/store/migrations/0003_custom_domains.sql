-- What happens to custom domains. Each change that takes a lock others wait for is one function,
-- so that its caller needs one statement and no lock outlives a dead pod. Locks are taken in
-- this order: tenant, names of domains (advisory), stream, domains and mailboxes by id.

CREATE INDEX domain_name ON domain (name) WHERE tenant IS NOT NULL AND removed_at IS NULL;

CREATE FUNCTION new_id(p_at timestamptz) RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT overlay(overlay(gen_random_uuid()::text PLACING left(time_id(p_at)::text, 13) FROM 1)
                   PLACING '7' FROM 15)::uuid
$$;
COMMENT ON FUNCTION new_id IS 'a new UUIDv7 of a moment';

-- Held by whoever makes a name serve, pending or system, from the look whether names meet on.
CREATE FUNCTION lock_domain_names() RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT pg_advisory_xact_lock(hashtext('tempmail.domain_names'))
$$;

CREATE FUNCTION meets_system_domain(p_name text, p_own_names text[]) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM domain d WHERE d.tenant IS NULL AND d.serves AND names_meet(d.name, p_name))
        OR EXISTS (SELECT FROM unnest(p_own_names) AS own (name) WHERE names_meet(own.name, p_name))
$$;
COMMENT ON FUNCTION meets_system_domain IS 'equal to, above or below a system domain or a name of the installation itself';

-- Removes the mailboxes and the mail of a custom domain: gone at once, carried out by the worker.
-- The caller holds the stream's row, whose seq it passes, so that no mail is under way to them.
CREATE FUNCTION clear_domain(p_domain uuid, p_seq bigint, p_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM mailbox b WHERE b.domain = p_domain ORDER BY b.id FOR NO KEY UPDATE;
    INSERT INTO purge (id, inbox, owner, address, up_to_seq)
    SELECT new_id(p_now), b.id, b.id, NULL, p_seq
      FROM mailbox b WHERE b.domain = p_domain AND b.removed_at IS NULL;
    UPDATE mailbox b
       SET removed_at = coalesce(b.removed_at, p_now), held_until = p_now, local_part = '@' || b.id,
           password_epoch = b.password_epoch + (b.removed_at IS NULL)::integer
     WHERE b.domain = p_domain;
    INSERT INTO purge (id, inbox, owner, address, up_to_seq)
    VALUES (new_id(p_now), p_domain, p_domain, NULL, p_seq);
END $$;

-- Makes a pending custom domain. Answers created, tenant_disabled, system_domain or
-- limit_reached; violates domain_of_tenant where the tenant has it already.
CREATE FUNCTION create_custom_domain(
    p_id uuid, p_tenant uuid, p_name text, p_token text, p_managed_by text, p_own_names text[],
    p_deadline timestamptz, p_next_check_at timestamptz, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_limit integer;
BEGIN
    SELECT t.domain_limit INTO v_limit FROM tenant t
     WHERE t.id = p_tenant AND NOT t.suspended AND t.removed_at IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 'tenant_disabled';
    END IF;
    PERFORM lock_domain_names();
    IF meets_system_domain(p_name, p_own_names) THEN
        RETURN 'system_domain';
    END IF;
    -- A statement of its own: its snapshot is younger than the tenant's lock.
    IF (SELECT count(*) FROM domain d WHERE d.tenant = p_tenant AND d.removed_at IS NULL) >= v_limit THEN
        RETURN 'limit_reached';
    END IF;
    INSERT INTO domain (id, name, tenant, serves, shared_inboxes, verify_status, verify_token, deadline,
                        next_check_at, managed_by, created_at)
    VALUES (p_id, p_name, p_tenant, false, false, 'pending', p_token, p_deadline,
            p_next_check_at, p_managed_by, p_now);
    RETURN 'created';
END $$;

-- Makes a custom domain verified, with all that follows for others. p_absent: the row that serves
-- the name, if the name servers say that its own TXT record is gone; only that row is
-- dispossessed. Answers verified, handed_over, held (another row serves the name), system_domain
-- or gone.
CREATE FUNCTION verify_custom_domain(
    p_id uuid, p_absent uuid, p_own_names text[], p_next_check_at timestamptz, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_name   text;
    v_seq    bigint;
    v_status text;
    v_holder uuid;
    v_former uuid;
BEGIN
    PERFORM lock_domain_names();
    SELECT d.name INTO v_name FROM domain d
     WHERE d.id = p_id AND d.tenant IS NOT NULL AND d.removed_at IS NULL;
    IF NOT FOUND THEN
        RETURN 'gone';
    END IF;
    IF meets_system_domain(v_name, p_own_names) THEN
        RETURN 'system_domain';
    END IF;
    -- Whoever else ever had the name loses what is left under it: no mail is to be under way.
    IF EXISTS (SELECT FROM domain d WHERE d.name = v_name AND d.id <> p_id AND d.tenant IS NOT NULL
                                      AND d.verified_at IS NOT NULL AND d.removed_at IS NULL) THEN
        SELECT s.seq INTO STRICT v_seq FROM stream s FOR UPDATE;
    END IF;
    PERFORM FROM domain d WHERE d.name = v_name AND d.tenant IS NOT NULL AND d.removed_at IS NULL
      ORDER BY d.id FOR NO KEY UPDATE;
    SELECT d.verify_status INTO v_status FROM domain d WHERE d.id = p_id AND d.removed_at IS NULL;
    IF NOT FOUND THEN
        RETURN 'gone';
    ELSIF v_status = 'verified' THEN
        RETURN 'verified';
    END IF;
    SELECT d.id INTO v_holder FROM domain d WHERE d.name = v_name AND d.serves;
    IF v_holder IS NOT NULL AND v_holder IS DISTINCT FROM p_absent THEN
        RETURN 'held';
    END IF;

    UPDATE domain d
       SET verify_status = 'failed', failure_reason = 'claimed_by_another', serves = false,
           txt_ok = d.txt_ok AND d.id IS DISTINCT FROM v_holder, next_check_at = NULL, claimed_until = NULL
     WHERE d.name = v_name AND d.id <> p_id AND d.tenant IS NOT NULL AND d.removed_at IS NULL
       AND d.verify_status <> 'failed';
    FOR v_former IN SELECT d.id FROM domain d
                     WHERE d.name = v_name AND d.id <> p_id AND d.tenant IS NOT NULL
                       AND d.verified_at IS NOT NULL AND d.removed_at IS NULL ORDER BY d.id
    LOOP
        PERFORM clear_domain(v_former, v_seq, p_now);
    END LOOP;
    UPDATE domain d
       SET verify_status = 'verified', failure_reason = NULL, serves = true, verified_at = p_now,
           txt_ok = true, mx_ok = true, lost_days = 0, next_check_at = p_next_check_at, claimed_until = NULL
     WHERE d.id = p_id;
    RETURN CASE WHEN v_holder IS NULL THEN 'verified' ELSE 'handed_over' END;
END $$;

-- Removes a custom domain: hidden, refused and empty at once. The row stays until its mail is
-- deleted, since it tells whose usage that lowers. Answers removed, managed or not_found.
CREATE FUNCTION remove_custom_domain(p_id uuid, p_tenant uuid, p_managed_by text, p_now timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_seq bigint;
    v_managed_by text;
BEGIN
    -- All mail waits for the stream's row: not for what is not there.
    SELECT d.managed_by INTO v_managed_by FROM domain d
     WHERE d.id = p_id AND d.tenant = p_tenant AND d.removed_at IS NULL;
    IF NOT FOUND THEN
        RETURN 'not_found';
    ELSIF v_managed_by <> p_managed_by THEN
        RETURN 'managed';
    END IF;
    SELECT s.seq INTO STRICT v_seq FROM stream s FOR UPDATE;
    UPDATE domain d SET removed_at = p_now, serves = false, next_check_at = NULL, claimed_until = NULL
     WHERE d.id = p_id AND d.removed_at IS NULL;
    IF NOT FOUND THEN
        RETURN 'not_found';
    END IF;
    PERFORM clear_domain(p_id, v_seq, p_now);
    RETURN 'removed';
END $$;
