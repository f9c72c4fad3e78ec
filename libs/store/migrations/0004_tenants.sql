-- Administration: tenants that go, and the system domains of an installation. Business time
-- is always an argument.

-- Removed tenants -------------------------------------------------------------

-- A held address outlives the tenant that had it, and a domain goes with its mail: neither
-- goes along with the row of a tenant.
ALTER TABLE mailbox
    DROP CONSTRAINT mailbox_tenant_fkey,
    ADD CONSTRAINT mailbox_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant (id);
ALTER TABLE domain
    DROP CONSTRAINT domain_tenant_fkey,
    ADD CONSTRAINT domain_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant (id);
CREATE INDEX mailbox_removed_of_tenant ON mailbox (tenant) WHERE tenant IS NOT NULL AND removed_at IS NOT NULL;
CREATE INDEX tenant_removed ON tenant (removed_at) WHERE removed_at IS NOT NULL;

-- Removes mailboxes whose addresses are held, for their tenants or, if these are forgotten, for
-- nobody: gone at once, their mail purged by the worker. The caller holds the stream's row, whose
-- seq it passes: so no mail is under way to them, and nobody else removes several at a time.
CREATE FUNCTION remove_held_mailboxes(
    p_ids uuid[], p_forget_tenants boolean, p_seq bigint, p_now timestamptz, p_hold_days integer
) RETURNS void LANGUAGE sql AS $$
    WITH removed AS (
        UPDATE mailbox b
           SET removed_at = p_now, held_until = p_now + make_interval(days => p_hold_days),
               password_epoch = b.password_epoch + 1,
               tenant = CASE WHEN NOT p_forget_tenants THEN b.tenant END
         WHERE b.id = ANY (p_ids) AND b.removed_at IS NULL
        RETURNING b.id
    )
    INSERT INTO purge (id, inbox, owner, address, up_to_seq)
    SELECT new_id(p_now), r.id, r.id, NULL, p_seq FROM removed r
$$;

-- Removes a tenant; false where it is gone already, or is `platform`.
--
-- Its name is free at once. It is left suspended and with limits of nothing, so that whatever
-- waited for its row to make something finds that it may not. No mailbox names it any more,
-- removed ones included: an address on a system domain stays held, and nobody is left who
-- might have it before the hold is over. The row itself goes when its domains are gone.
CREATE FUNCTION remove_tenant(p_id uuid, p_now timestamptz, p_hold_days integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_seq    bigint;
    v_domain uuid;
BEGIN
    UPDATE tenant
       SET name = '@' || id, removed_at = p_now, suspended = true,
           mailbox_limit = 0, domain_limit = 0, webhook_limit = 0, token_limit = 0
     WHERE id = p_id AND removed_at IS NULL AND id <> '00000000-0000-7000-8000-000000000001';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- All of its mail that is under way is stored, or will find it suspended.
    SELECT s.seq INTO STRICT v_seq FROM stream s FOR UPDATE;

    FOR v_domain IN SELECT d.id FROM domain d WHERE d.tenant = p_id AND d.removed_at IS NULL ORDER BY d.id LOOP
        UPDATE domain SET removed_at = p_now, serves = false, next_check_at = NULL, claimed_until = NULL
         WHERE id = v_domain;
        PERFORM clear_domain(v_domain, v_seq, p_now);
    END LOOP;
    PERFORM remove_held_mailboxes(
        ARRAY(SELECT b.id FROM mailbox b WHERE b.tenant = p_id AND b.removed_at IS NULL),
        true, v_seq, p_now, p_hold_days);
    UPDATE mailbox SET tenant = NULL WHERE tenant = p_id AND removed_at IS NOT NULL;

    DELETE FROM api_token WHERE tenant = p_id;
    DELETE FROM webhook WHERE tenant = p_id;
    RETURN true;
END $$;

-- System domains ---------------------------------------------------------------

-- Makes a system domain serve, a new one or one that was removed, which has its held addresses
-- still. What is null stays as it was, or is the default. o_id: its row; o_met: the custom
-- domain that is in the way; neither: it serves already. The first one becomes the default.
CREATE FUNCTION add_system_domain(
    p_id uuid, p_name text, p_shared_inboxes boolean, p_sort_order integer, p_now timestamptz,
    OUT o_id uuid, OUT o_met text
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_domain_names();
    IF EXISTS (SELECT FROM domain WHERE name = p_name AND tenant IS NULL AND serves) THEN
        RETURN;
    END IF;
    SELECT d.name INTO o_met FROM domain d
     WHERE d.tenant IS NOT NULL AND d.removed_at IS NULL AND d.verify_status IN ('pending', 'verified')
       AND names_meet(d.name, p_name)
     ORDER BY d.name LIMIT 1;
    IF FOUND THEN
        RETURN;
    END IF;
    UPDATE domain d
       SET serves = true, shared_inboxes = coalesce(p_shared_inboxes, d.shared_inboxes),
           sort_order = coalesce(p_sort_order, d.sort_order),
           is_default = NOT EXISTS (SELECT FROM domain WHERE is_default)
     WHERE d.name = p_name AND d.tenant IS NULL
    RETURNING d.id INTO o_id;
    IF FOUND THEN
        RETURN;
    END IF;
    INSERT INTO domain (id, name, tenant, serves, shared_inboxes, is_default, sort_order, created_at)
    SELECT p_id, p_name, NULL, true, coalesce(p_shared_inboxes, true),
           NOT EXISTS (SELECT FROM domain WHERE is_default),
           coalesce(p_sort_order, (SELECT coalesce(max(sort_order) + 1, 0) FROM domain
                                    WHERE tenant IS NULL AND serves)), p_now
    RETURNING id INTO o_id;
END $$;

-- Takes a system domain out of service, unless it is the only one, the default one, or
-- mailboxes use it that are not to go with it (o_mailboxes says how many there are). Its row
-- stays and holds its addresses.
CREATE FUNCTION remove_system_domain(
    p_name text, p_with_mailboxes boolean, p_now timestamptz, p_hold_days integer,
    OUT o_verdict text, OUT o_mailboxes bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_id         uuid;
    v_is_default boolean;
    v_seq        bigint;
BEGIN
    PERFORM lock_domain_names();
    IF p_with_mailboxes THEN
        SELECT s.seq INTO STRICT v_seq FROM stream s FOR UPDATE;
    END IF;
    -- Whoever makes a mailbox holds the row meanwhile.
    SELECT d.id, d.is_default INTO v_id, v_is_default
      FROM domain d WHERE d.name = p_name AND d.tenant IS NULL AND d.serves FOR UPDATE;
    IF NOT FOUND THEN
        o_verdict := 'unknown';
        RETURN;
    END IF;
    SELECT count(*) INTO o_mailboxes FROM mailbox b WHERE b.domain = v_id AND b.removed_at IS NULL;
    o_verdict := CASE
        WHEN NOT EXISTS (SELECT FROM domain WHERE tenant IS NULL AND serves AND id <> v_id) THEN 'only'
        WHEN v_is_default THEN 'default'
        WHEN o_mailboxes > 0 AND NOT p_with_mailboxes THEN 'used'
        ELSE 'removed' END;
    IF o_verdict <> 'removed' THEN
        RETURN;
    END IF;
    UPDATE domain SET serves = false WHERE id = v_id;
    IF o_mailboxes > 0 THEN
        PERFORM remove_held_mailboxes(
            ARRAY(SELECT b.id FROM mailbox b WHERE b.domain = v_id AND b.removed_at IS NULL),
            false, v_seq, p_now, p_hold_days);
    END IF;
END $$;

-- Makes a system domain the default one; false where it does not serve.
CREATE FUNCTION set_default_system_domain(p_name text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_id uuid;
BEGIN
    PERFORM lock_domain_names();
    SELECT d.id INTO v_id FROM domain d WHERE d.name = p_name AND d.tenant IS NULL AND d.serves FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE domain SET is_default = false WHERE is_default AND id <> v_id;
    UPDATE domain SET is_default = true WHERE id = v_id AND NOT is_default;
    RETURN true;
END $$;
