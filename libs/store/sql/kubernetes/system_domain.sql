-- System domains as Kubernetes objects declare them.

-- Makes an object's system domain serve and match the object, and the default one if p_default. One that
-- serves and has no object is adopted, and so is that of a predecessor (is_predecessor). Answers created,
-- adopted, existing, managed_by_another or overlaps_custom_domain.
CREATE OR REPLACE FUNCTION declare_system_domain(
    p_epoch bigint, p_uid uuid, p_id uuid, p_name text, p_shared_inboxes boolean, p_sort_order integer,
    p_default boolean, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_id     uuid;
    v_overlapping text;
    v_answer text := 'existing';
BEGIN
    PERFORM lock_epoch(p_epoch, p_uid);
    SELECT a.o_id, a.o_overlapping INTO v_id, v_overlapping
      FROM add_system_domain(p_id, p_name, p_shared_inboxes, p_sort_order, p_now) a;
    IF v_overlapping IS NOT NULL THEN
        RETURN 'overlaps_custom_domain';
    ELSIF v_id IS NOT NULL THEN
        v_answer := 'created';
    ELSE
        SELECT d.id INTO STRICT v_id FROM domain d
         WHERE d.name = p_name AND d.tenant IS NULL AND d.serves FOR NO KEY UPDATE;
    END IF;
    IF EXISTS (SELECT FROM resource r
                WHERE r.row_id = v_id AND r.uid <> p_uid AND NOT is_predecessor(r, p_uid)) THEN
        RETURN 'managed_by_another';
    ELSIF v_answer = 'existing' AND NOT EXISTS (SELECT FROM resource WHERE row_id = v_id) THEN
        v_answer := 'adopted';
    END IF;
    UPDATE domain
       SET managed_by = 'kubernetes', shared_inboxes = p_shared_inboxes, sort_order = p_sort_order
     WHERE id = v_id
       AND (managed_by, shared_inboxes, sort_order) IS DISTINCT FROM ('kubernetes', p_shared_inboxes, p_sort_order);
    IF p_default THEN
        PERFORM set_default_system_domain(p_name);
    END IF;
    DELETE FROM resource WHERE row_id = v_id AND uid <> p_uid;
    UPDATE resource SET row_id = v_id WHERE uid = p_uid;
    RETURN v_answer;
END $$;

-- Takes an object's system domain out of service and releases it, unless remove_system_domain refuses.
-- Answers as remove_system_domain does; not_found: the object has none.
CREATE OR REPLACE FUNCTION release_system_domain(
    p_epoch bigint, p_uid uuid, p_now timestamptz, OUT o_outcome text, OUT o_mailboxes bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_name text;
BEGIN
    PERFORM lock_epoch(p_epoch, p_uid);
    SELECT d.name INTO v_name FROM resource r JOIN domain d ON d.id = r.row_id WHERE r.uid = p_uid AND d.serves;
    o_outcome := 'not_found';
    IF FOUND THEN
        SELECT s.o_outcome, s.o_mailboxes INTO o_outcome, o_mailboxes
          FROM remove_system_domain(v_name, false, p_now, 0) s;
    END IF;
    IF o_outcome IN ('removed', 'not_found') THEN
        UPDATE domain d SET managed_by = 'api' FROM resource r WHERE r.uid = p_uid AND d.id = r.row_id;
        DELETE FROM resource WHERE uid = p_uid;
    END IF;
END $$;
