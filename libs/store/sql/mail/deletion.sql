-- Deletion of messages. Locks are taken in this order: the inbox (advisory), raw data by mail, usage by scope, class and
-- partition, and last the partition, which every delivery changes. What an owner deletes as a whole is hidden at once by
-- a row of `purge`, and deleted by the worker in batches.

-- Deletes messages of one class with the raw data that no other message refers to, and lowers the sums that
-- count them; returns the bytes that they had. What a cleared inbox had is not in its sums any more.
CREATE OR REPLACE FUNCTION delete_messages(p_class smallint, p_ids uuid[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_freed bigint;
BEGIN
    PERFORM FROM raw r
     WHERE r.class = p_class AND r.part = 0
       AND r.mail IN (SELECT m.mail FROM message m WHERE m.class = p_class AND m.id = ANY (p_ids))
     ORDER BY r.mail FOR UPDATE;
    WITH deleted AS (
        DELETE FROM message m WHERE m.class = p_class AND m.id = ANY (p_ids) RETURNING m.*
    ), per_mail AS (
        SELECT mail, count(*)::integer AS n FROM deleted GROUP BY mail
    ), last_of_mail AS (
        SELECT g.mail FROM per_mail g JOIN raw r ON r.class = p_class AND r.mail = g.mail AND r.part = 0
         WHERE r.recipients <= g.n
    ), raw_kept AS (
        UPDATE raw r SET recipients = r.recipients - g.n FROM per_mail g
         WHERE r.class = p_class AND r.mail = g.mail AND r.part = 0 AND r.recipients > g.n
    ), raw_deleted AS (
        DELETE FROM raw r USING last_of_mail l WHERE r.class = p_class AND r.mail = l.mail
    ), placed AS (
        SELECT g.*, partition_start(p_class, id_time(g.id)) AS starts FROM deleted g
    ), counted AS (
        SELECT g.inbox AS scope, g.starts, g.id, g.size FROM placed g
         WHERE g.owner_kind <> 0
           AND NOT EXISTS (SELECT FROM purge p
                            WHERE NOT p.owner_removed AND p.inbox = g.inbox AND p.owner = g.owner
                              AND p.address IN ('', g.address) AND p.up_to_seq >= g.seq OFFSET 0)
        UNION ALL
        SELECT g.tenant, g.starts, g.id, g.size FROM placed g WHERE g.tenant IS NOT NULL
    ), locked AS (
        SELECT u.scope, u.starts, u.expired_before
          FROM (SELECT DISTINCT c.scope, c.starts FROM counted c) s
          JOIN usage u ON u.scope = s.scope AND u.class = p_class AND u.starts = s.starts
         ORDER BY u.scope, u.starts FOR UPDATE OF u
    ), usage_lowered AS (
        UPDATE usage u SET bytes = u.bytes - x.bytes
          FROM (SELECT l.scope, l.starts, sum(c.size) AS bytes
                  FROM locked l JOIN counted c ON c.scope = l.scope AND c.starts = l.starts AND c.id >= l.expired_before
                 GROUP BY 1, 2) x
         WHERE u.scope = x.scope AND u.class = p_class AND u.starts = x.starts
        RETURNING u.scope
    ), partition_lowered AS (
        -- Last, since every delivery changes these rows.
        UPDATE message_partition p SET bytes = p.bytes - x.bytes, shared_bytes = p.shared_bytes - x.shared_bytes
          FROM (SELECT g.starts, sum(g.size) AS bytes,
                       coalesce(sum(g.size) FILTER (WHERE g.owner_kind = 0), 0) AS shared_bytes
                  FROM placed g WHERE (SELECT count(*) FROM usage_lowered) >= 0 GROUP BY 1) x
         WHERE p.class = p_class AND p.starts = x.starts
    )
    SELECT coalesce(sum(size), 0) INTO v_freed FROM deleted;
    RETURN v_freed;
END $$;

-- Deletes a message that is shown; false where it is not, or not any more.
CREATE OR REPLACE FUNCTION delete_message(p_class smallint, p_id uuid, p_inbox uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_inbox(p_inbox);
    IF NOT EXISTS (SELECT FROM visible_message m WHERE m.class = p_class AND m.id = p_id) THEN
        RETURN false;
    END IF;
    RETURN delete_messages(p_class, ARRAY[p_id]) > 0;
END $$;

-- Deletes what an inbox has now, all of it or (p_address is not empty) what went to that exact address. It is
-- hidden at once and counts no more; mail is stored meanwhile.
CREATE OR REPLACE FUNCTION clear_inbox(p_inbox uuid, p_owner uuid, p_address text, p_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_seq    bigint;
    v_usage  usage;
    v_from   uuid;
    v_past   uuid;
    v_hidden usage[] := '{}';
BEGIN
    PERFORM lock_inbox(p_inbox);
    -- Every message up to this position shows in the statements that follow.
    SELECT s.seq INTO STRICT v_seq FROM stream s;
    FOR v_usage IN SELECT * FROM usage u WHERE u.scope = p_inbox ORDER BY u.class, u.starts LOOP
        v_from := greatest(v_usage.expired_before, time_id(v_usage.starts));
        v_past := time_id(v_usage.starts + partition_width(v_usage.class));
        -- In the order of the index that finds them: also a plan that was made for an empty partition uses it.
        v_usage.bytes := (
            SELECT coalesce(sum(x.size), 0)
              FROM (SELECT m.size FROM visible_message m
                     WHERE m.class = v_usage.class AND m.id >= v_from AND m.id < v_past
                       AND m.inbox = p_inbox AND m.owner = p_owner AND m.seq <= v_seq
                       AND (p_address = '' OR m.address = p_address)
                     ORDER BY m.seq OFFSET 0) x);
        v_hidden := v_hidden || v_usage;
    END LOOP;
    INSERT INTO purge (inbox, owner, address, up_to_seq, owner_removed, created_at)
    VALUES (p_inbox, p_owner, p_address, v_seq, false, p_now)
    ON CONFLICT DO NOTHING;
    PERFORM FROM usage u WHERE u.scope = p_inbox ORDER BY u.class, u.starts FOR UPDATE;
    UPDATE usage u SET bytes = u.bytes - h.bytes
      FROM unnest(v_hidden) AS h
     WHERE u.scope = p_inbox AND u.class = h.class AND u.starts = h.starts AND h.bytes <> 0;
END $$;

-- Hides everything that a mailbox or custom domain has, which is being removed. The caller holds the stream's
-- row, whose position it passes, so that no mail is on its way to it.
CREATE OR REPLACE FUNCTION purge_owner(p_owner uuid, p_seq bigint, p_now timestamptz) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO purge (inbox, owner, address, up_to_seq, owner_removed, created_at)
    VALUES (p_owner, p_owner, '', p_seq, true, p_now)
    ON CONFLICT DO NOTHING
$$;

-- Deletes up to p_limit messages of one class that a purge hides; returns how many. Where it hides none any more it is
-- deleted itself, and the answer is 0; so it is while another worker carries it out.
CREATE OR REPLACE FUNCTION purge_batch(p_id uuid, p_limit integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_purge purge;
    v_class smallint;
    v_ids   uuid[];
BEGIN
    SELECT * INTO v_purge FROM purge WHERE id = p_id FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    FOR v_class IN SELECT DISTINCT class FROM message_partition ORDER BY 1 LOOP
        -- Mail of a custom domain has the keys of its addresses as inboxes.
        v_ids := ARRAY(
            SELECT m.id FROM message m
             WHERE m.class = v_class AND m.inbox = v_purge.inbox AND m.owner = v_purge.owner
               AND m.seq <= v_purge.up_to_seq AND v_purge.address IN ('', m.address)
            UNION ALL
            SELECT m.id FROM message m
             WHERE m.class = v_class AND m.owner_kind = 2 AND m.owner = v_purge.owner
               AND v_purge.inbox = v_purge.owner AND m.seq <= v_purge.up_to_seq
            LIMIT p_limit);
        IF cardinality(v_ids) > 0 THEN
            -- One class a transaction: locks of two would not be in the order of a delivery.
            PERFORM delete_messages(v_class, v_ids);
            RETURN cardinality(v_ids);
        END IF;
    END LOOP;
    DELETE FROM purge WHERE id = p_id;
    RETURN 0;
END $$;
