-- Reads of an inbox touch only the partitions that can have its mail. A partition that a plan
-- names costs time to open even where nothing is looked for in it; in a function of its own the
-- class and the oldest id are known when the plan starts, and the others are never opened.
-- Connections of the roles ask for generic plans: each is planned once a connection.

-- As before, of functions that depend on no setting: only so is it expanded where it is used.
-- With `extract` of a point in time it was parsed and planned at every call.
CREATE OR REPLACE FUNCTION time_id(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM at - 'epoch'::timestamptz) * 1000)::bigint), 12, '0')
            || repeat('0', 20))::uuid
$$;

-- The unexpired messages of an inbox in one class after a position, oldest first.
-- p_address: null for all that the inbox has, else those to that exact address.
CREATE FUNCTION inbox_after(
    p_class smallint, p_now timestamptz, p_inbox uuid, p_owner uuid, p_address text, p_seq bigint, p_limit bigint
) RETURNS SETOF message LANGUAGE plpgsql STABLE ROWS 20 AS $$
DECLARE
    v_oldest CONSTANT uuid := time_id(p_now - make_interval(hours => p_class));
BEGIN
    RETURN QUERY
    SELECT m.* FROM message m
    WHERE m.class = p_class AND m.id >= v_oldest AND m.inbox = p_inbox AND m.owner = p_owner
      AND (p_address IS NULL OR m.address = p_address) AND m.seq > p_seq
      AND NOT EXISTS (SELECT FROM purge p WHERE p.inbox IN (m.inbox, m.owner) AND p.owner = m.owner
                      AND (p.address IS NULL OR p.address = m.address) AND m.seq <= p.up_to_seq)
    ORDER BY m.seq LIMIT p_limit;
END $$;

-- The same before a position, newest first.
CREATE FUNCTION inbox_before(
    p_class smallint, p_now timestamptz, p_inbox uuid, p_owner uuid, p_address text, p_seq bigint, p_limit bigint
) RETURNS SETOF message LANGUAGE plpgsql STABLE ROWS 20 AS $$
DECLARE
    v_oldest CONSTANT uuid := time_id(p_now - make_interval(hours => p_class));
BEGIN
    RETURN QUERY
    SELECT m.* FROM message m
    WHERE m.class = p_class AND m.id >= v_oldest AND m.inbox = p_inbox AND m.owner = p_owner
      AND (p_address IS NULL OR m.address = p_address) AND m.seq < p_seq
      AND NOT EXISTS (SELECT FROM purge p WHERE p.inbox IN (m.inbox, m.owner) AND p.owner = m.owner
                      AND (p.address IS NULL OR p.address = m.address) AND m.seq <= p.up_to_seq)
    ORDER BY m.seq DESC LIMIT p_limit;
END $$;

-- As before, in steps: messages are read only for a slot that is expiring just now, at most one
-- a class, and for all of them only while a deletion is being carried out.
CREATE OR REPLACE FUNCTION mailbox_used(p_mailbox uuid, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_purged CONSTANT boolean := EXISTS (SELECT FROM purge p WHERE p.inbox = p_mailbox);
    v_used   bigint;
    v_slot   record;
    v_oldest uuid;
    v_past   uuid;
BEGIN
    SELECT coalesce(sum(u.bytes), 0) INTO v_used FROM usage u
    WHERE u.scope = p_mailbox AND u.slot >= p_now - make_interval(hours => u.class) AND NOT v_purged;

    FOR v_slot IN
        SELECT u.class, u.slot FROM usage u
        WHERE u.scope = p_mailbox AND u.slot + slot_width(u.class) > p_now - make_interval(hours => u.class)
          AND (v_purged OR u.slot < p_now - make_interval(hours => u.class))
    LOOP
        v_oldest := time_id(greatest(v_slot.slot, p_now - make_interval(hours => v_slot.class)));
        v_past := time_id(v_slot.slot + slot_width(v_slot.class));
        v_used := v_used + (
            SELECT coalesce(sum(m.size), 0) FROM message m
            WHERE m.class = v_slot.class AND m.inbox = p_mailbox AND m.id >= v_oldest AND m.id < v_past
              AND NOT EXISTS (SELECT FROM purge p WHERE p.inbox IN (m.inbox, m.owner) AND p.owner = m.owner
                              AND (p.address IS NULL OR p.address = m.address) AND m.seq <= p.up_to_seq));
    END LOOP;
    RETURN v_used;
END $$;
