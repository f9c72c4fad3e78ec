-- System domains: added, removed, and which one is the default. For the order of locks see name.sql.

-- Makes a system domain serve, a new one or one that was removed, which still has its held addresses.
-- A null argument keeps the value of a removed domain, or is the default. o_id: its row; o_overlapping: the custom
-- domain whose name overlaps; neither: it serves already. The first one becomes the default.
CREATE OR REPLACE FUNCTION add_system_domain(
    p_id uuid, p_name text, p_shared_inboxes boolean, p_sort_order integer, p_now timestamptz,
    OUT o_id uuid, OUT o_overlapping text
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_domain_names();
    IF EXISTS (SELECT FROM domain WHERE name = p_name AND tenant IS NULL AND serves) THEN
        RETURN;
    END IF;
    SELECT d.name INTO o_overlapping FROM domain d
     WHERE d.tenant IS NOT NULL AND d.removed_at IS NULL AND d.verify_status IN ('pending', 'verified')
       AND domains_overlap(d.name, p_name)
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

-- Takes a system domain out of service. Its row stays and holds its addresses. o_outcome is removed,
-- unknown, only (it is the only one), default, or used: o_mailboxes mailboxes use it, and
-- p_with_mailboxes does not say that they go with it.
CREATE OR REPLACE FUNCTION remove_system_domain(
    p_name text, p_with_mailboxes boolean, p_now timestamptz, p_hold_days integer,
    OUT o_outcome text, OUT o_mailboxes bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_id         uuid;
    v_is_default boolean;
BEGIN
    PERFORM lock_domain_names();
    -- create_mailbox holds a share lock on the row.
    SELECT d.id, d.is_default INTO v_id, v_is_default
      FROM domain d WHERE d.name = p_name AND d.tenant IS NULL AND d.serves FOR UPDATE;
    IF NOT FOUND THEN
        o_outcome := 'not_found';
        RETURN;
    END IF;
    SELECT count(*) INTO o_mailboxes FROM mailbox b WHERE b.domain = v_id AND b.removed_at IS NULL;
    o_outcome := CASE
        WHEN NOT EXISTS (SELECT FROM domain WHERE tenant IS NULL AND serves AND id <> v_id) THEN 'last_one'
        WHEN v_is_default THEN 'is_default'
        WHEN o_mailboxes > 0 AND NOT p_with_mailboxes THEN 'in_use'
        ELSE 'removed' END;
    IF o_outcome <> 'removed' THEN
        RETURN;
    END IF;
    UPDATE domain SET serves = false WHERE id = v_id;
    IF o_mailboxes > 0 THEN
        PERFORM remove_held_mailboxes(
            ARRAY(SELECT b.id FROM mailbox b WHERE b.domain = v_id AND b.removed_at IS NULL),
            false, p_now, p_hold_days);
        PERFORM wait_for_mail();
    END IF;
END $$;

-- Makes a system domain the default one; false where it does not serve.
CREATE OR REPLACE FUNCTION set_default_system_domain(p_name text) RETURNS boolean LANGUAGE plpgsql AS $$
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
