-- Deletion of messages. Locks are taken in this order: the inbox (advisory), raw data by mail, usage by scope, class and
-- partition, and last the partition, which every delivery changes. What an owner deletes as a whole is hidden at once by
-- a row of `purge`, and deleted by the worker in batches.
--
-- No deletion waits for the disk while it holds locks, since all mail waits for them: its transaction ends before, and
-- who answers that something is deleted waits after it (`Store::flush`).

-- The messages of a mail in one class: their ids have its millisecond. p_from and p_past: all of them are between, so that
-- few partitions are opened. Inlined where it is called; OFFSET 0: by their ids, and not by the inbox that is wanted.
CREATE OR REPLACE FUNCTION messages_of_mail(p_class smallint, p_from uuid, p_past uuid, p_mail uuid)
RETURNS TABLE (id uuid, inbox uuid, owner uuid, tenant uuid, seq bigint, owner_kind smallint, address text)
LANGUAGE sql STABLE AS $$
    SELECT m.id, m.inbox, m.owner, m.tenant, m.seq, m.owner_kind, m.address FROM message m
     WHERE m.class = p_class AND m.id >= p_from AND m.id < p_past
       AND m.id >= (left(p_mail::text, 13) || '-0000-0000-000000000000')::uuid
       AND m.id <= (left(p_mail::text, 13) || '-ffff-ffff-ffffffffffff')::uuid
       AND m.mail = p_mail
    OFFSET 0
$$;

-- Deletes messages of one class with the raw data that no other message refers to, and lowers the sums that
-- count them; returns the bytes that they had. What a cleared inbox had is not in its sums any more.
--
-- A sum gives up the data of a mail with the last of its messages that the sum counts. The lock of the raw data makes
-- deletions of one mail wait for each other, so that each knows which messages are left.
CREATE OR REPLACE FUNCTION delete_messages(p_class smallint, p_ids uuid[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_freed  bigint;
    -- All messages of these mails are between.
    v_lowest CONSTANT uuid := (SELECT time_id(id_time(i.id)) FROM unnest(p_ids) AS i (id) ORDER BY i.id LIMIT 1);
    v_past   CONSTANT uuid := (SELECT time_id(id_time(i.id) + interval '1 millisecond')
                                 FROM unnest(p_ids) AS i (id) ORDER BY i.id DESC LIMIT 1);
    -- What the usage of scopes gives up, by mail; and what partitions do.
    v_scope  uuid[];
    v_mail   uuid[];
    v_bytes  bigint[];
    v_starts timestamptz[];
    v_all    bigint[];
    v_free   bigint[];
    v_shared bigint[];
BEGIN
    PERFORM FROM raw r
     WHERE r.class = p_class AND r.part = 0
       AND r.mail IN (SELECT m.mail FROM message m WHERE m.class = p_class AND m.id = ANY (p_ids))
     ORDER BY r.mail FOR UPDATE;
    WITH deleted AS (
        DELETE FROM message m WHERE m.class = p_class AND m.id = ANY (p_ids)
        RETURNING m.mail, m.inbox, m.owner, m.owner_kind, m.tenant, m.address, m.seq, m.size
    ), mails AS MATERIALIZED (
        SELECT g.mail, g.messages, g.free, g.shared, coalesce(r.stored_bytes, 0) AS data,
               coalesce(r.recipients, 0) <= g.messages AS is_last
          FROM (SELECT d.mail, count(*)::integer AS messages, count(*) FILTER (WHERE d.tenant IS NULL) AS free,
                       count(*) FILTER (WHERE d.owner_kind = 0) AS shared
                  FROM deleted d GROUP BY d.mail) g
          LEFT JOIN raw r ON r.class = p_class AND r.mail = g.mail AND r.part = 0
    ), raw_kept AS (
        UPDATE raw r SET recipients = r.recipients - w.messages FROM mails w
         WHERE r.class = p_class AND r.mail = w.mail AND r.part = 0 AND NOT w.is_last
    ), raw_deleted AS (
        DELETE FROM raw r USING mails w WHERE r.class = p_class AND r.mail = w.mail AND w.is_last
    ), of_scope AS (
        SELECT d.inbox AS scope, d.mail,
               CASE WHEN NOT w.is_last
                     AND EXISTS (SELECT FROM messages_of_mail(p_class, v_lowest, v_past, d.mail) k
                                  WHERE k.inbox = d.inbox AND k.id <> ALL (p_ids)
                                    AND NOT EXISTS (SELECT FROM purge p
                                                     WHERE NOT p.owner_removed AND p.inbox = k.inbox
                                                       AND p.owner = k.owner AND p.address IN ('', k.address)
                                                       AND p.up_to_seq >= k.seq OFFSET 0))
                    THEN count(*) * least(max(d.size), message_row_bytes())
                    ELSE inbox_bytes(max(d.size), count(*)) END AS bytes
          FROM deleted d JOIN mails w ON w.mail = d.mail
         WHERE d.owner_kind <> 0
           AND NOT EXISTS (SELECT FROM purge p
                            WHERE NOT p.owner_removed AND p.inbox = d.inbox AND p.owner = d.owner
                              AND p.address IN ('', d.address) AND p.up_to_seq >= d.seq OFFSET 0)
         GROUP BY d.inbox, d.mail, w.is_last
        UNION ALL
        SELECT d.tenant, d.mail,
               stored_bytes(CASE WHEN NOT w.is_last
                                  AND EXISTS (SELECT FROM messages_of_mail(p_class, v_lowest, v_past, d.mail) k
                                               WHERE k.tenant = d.tenant AND k.id <> ALL (p_ids))
                                 THEN 0 ELSE w.data END, count(*))
          FROM deleted d JOIN mails w ON w.mail = d.mail
         WHERE d.tenant IS NOT NULL
         GROUP BY d.tenant, d.mail, w.data, w.is_last
    ), of_partition AS (
        SELECT partition_start(p_class, id_time(w.mail)) AS starts,
               sum(stored_bytes(CASE WHEN w.is_last THEN w.data ELSE 0 END, w.messages)) AS bytes,
               sum(stored_bytes(CASE WHEN w.free > 0 AND NOT w.is_last
                                      AND EXISTS (SELECT FROM messages_of_mail(p_class, v_lowest, v_past, w.mail) k
                                                   WHERE k.tenant IS NULL AND k.id <> ALL (p_ids))
                                     THEN 0 ELSE w.data END, w.free)) AS free,
               sum(stored_bytes(CASE WHEN w.shared > 0 AND NOT w.is_last
                                      AND EXISTS (SELECT FROM messages_of_mail(p_class, v_lowest, v_past, w.mail) k
                                                   WHERE k.owner_kind = 0 AND k.id <> ALL (p_ids))
                                     THEN 0 ELSE w.data END, w.shared)) AS shared
          FROM mails w GROUP BY 1
    )
    SELECT s.scopes, s.mails, s.bytes, p.starts, p.bytes, p.free, p.shared, f.bytes
      INTO v_scope, v_mail, v_bytes, v_starts, v_all, v_free, v_shared, v_freed
      FROM (SELECT array_agg(o.scope) AS scopes, array_agg(o.mail) AS mails, array_agg(o.bytes) AS bytes
              FROM of_scope o) s
     CROSS JOIN (SELECT array_agg(o.starts) AS starts, array_agg(o.bytes::bigint) AS bytes,
                        array_agg(o.free::bigint) AS free, array_agg(o.shared::bigint) AS shared
                   FROM of_partition o) p
     CROSS JOIN (SELECT coalesce(sum(d.size), 0) AS bytes FROM deleted d) f;

    -- Deliveries change what follows: in statements of their own, so that none waits for what came before, which may
    -- have been much. They lock usage in the same order.
    PERFORM FROM (SELECT DISTINCT e.scope, partition_start(p_class, id_time(e.mail)) AS starts
                    FROM unnest(v_scope, v_mail) AS e (scope, mail)) s
      JOIN usage u ON u.scope = s.scope AND u.class = p_class AND u.starts = s.starts
     ORDER BY u.scope, u.starts FOR UPDATE OF u;
    UPDATE usage u SET bytes = u.bytes - x.bytes
      FROM (SELECT l.scope, l.starts, sum(e.bytes) AS bytes
              FROM unnest(v_scope, v_mail, v_bytes) AS e (scope, mail, bytes)
              JOIN usage l ON l.scope = e.scope AND l.class = p_class
                          AND l.starts = partition_start(p_class, id_time(e.mail))
                          AND l.expired_before <= time_id(id_time(e.mail))
             GROUP BY 1, 2) x
     WHERE u.scope = x.scope AND u.class = p_class AND u.starts = x.starts;
    -- Last, since every delivery changes these rows.
    PERFORM FROM message_partition p
     WHERE p.class = p_class AND p.starts = ANY (v_starts) ORDER BY p.starts FOR NO KEY UPDATE;
    UPDATE message_partition p
       SET bytes = p.bytes - x.bytes, free_bytes = p.free_bytes - x.free, shared_bytes = p.shared_bytes - x.shared
      FROM unnest(v_starts, v_all, v_free, v_shared) AS x (starts, bytes, free, shared)
     WHERE p.class = p_class AND p.starts = x.starts;
    RETURN v_freed;
END $$;

-- Deletes a message that is shown; false where it is not, or not any more.
CREATE OR REPLACE FUNCTION delete_message(p_class smallint, p_id uuid, p_inbox uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM lock_inbox(p_inbox);
    IF NOT EXISTS (SELECT FROM visible_message m WHERE m.class = p_class AND m.id = p_id) THEN
        RETURN false;
    END IF;
    RETURN delete_messages(p_class, ARRAY[p_id]) > 0;
END $$;

-- Deletes what an inbox has now, all of it or (p_address is not empty) what went to that exact address, which has a tag.
-- It is hidden at once and counts no more; mail is stored meanwhile.
CREATE OR REPLACE FUNCTION clear_inbox(p_inbox uuid, p_owner uuid, p_address text, p_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_seq    bigint;
    v_usage  record;
    v_from   uuid;
    v_past   uuid;
    v_bytes  bigint;
    -- What is hidden of each row of usage.
    v_class  smallint[] := '{}';
    v_starts timestamptz[] := '{}';
    v_hidden bigint[] := '{}';
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM lock_inbox(p_inbox);
    -- Every message up to this position shows in the statements that follow.
    SELECT s.seq INTO STRICT v_seq FROM stream s;
    FOR v_usage IN SELECT u.class, u.starts, u.expired_before FROM usage u
                    WHERE u.scope = p_inbox ORDER BY u.class, u.starts LOOP
        v_from := greatest(v_usage.expired_before, time_id(v_usage.starts));
        v_past := time_id(v_usage.starts + partition_width(v_usage.class));
        -- In the order of the index that finds them: also a plan that was made for an empty partition uses it. Of a
        -- mail that also went to an address of the mailbox that is not cleared, only rows are hidden.
        v_bytes := (
            SELECT coalesce(sum(CASE
                       WHEN p_address <> '' AND NOT x.single_recipient
                            AND EXISTS (SELECT FROM messages_of_mail(v_usage.class, v_from, v_past, x.mail) k
                                         WHERE k.inbox = p_inbox AND k.address <> p_address
                                           AND EXISTS (SELECT FROM visible_message v
                                                        WHERE v.class = v_usage.class AND v.id = k.id
                                                          AND v.id >= v_from AND v.id < v_past OFFSET 0))
                       THEN x.messages * least(x.size, message_row_bytes())
                       ELSE inbox_bytes(x.size, x.messages) END), 0)
              FROM (SELECT h.mail, bool_and(h.single_recipient) AS single_recipient, max(h.size) AS size,
                           count(*) AS messages
                      FROM ((SELECT m.mail, m.single_recipient, m.size FROM visible_message m
                              WHERE p_address = '' AND m.class = v_usage.class AND m.id >= v_from AND m.id < v_past
                                AND m.inbox = p_inbox AND m.owner = p_owner AND m.seq <= v_seq
                              ORDER BY m.seq OFFSET 0)
                            UNION ALL
                            (SELECT m.mail, m.single_recipient, m.size FROM visible_message m
                              WHERE m.address = p_address AND m.address LIKE '%+%'
                                AND m.class = v_usage.class AND m.id >= v_from AND m.id < v_past
                                AND m.inbox = p_inbox AND m.owner = p_owner AND m.seq <= v_seq
                              ORDER BY m.seq OFFSET 0)) h
                     GROUP BY h.mail) x);
        v_class := v_class || v_usage.class;
        v_starts := v_starts || v_usage.starts;
        v_hidden := v_hidden || v_bytes;
    END LOOP;
    INSERT INTO purge (inbox, owner, address, up_to_seq, owner_removed, created_at)
    VALUES (p_inbox, p_owner, p_address, v_seq, false, p_now)
    ON CONFLICT DO NOTHING;
    PERFORM FROM usage u WHERE u.scope = p_inbox ORDER BY u.class, u.starts FOR UPDATE;
    UPDATE usage u SET bytes = u.bytes - h.bytes
      FROM unnest(v_class, v_starts, v_hidden) AS h (class, starts, bytes)
     WHERE u.scope = p_inbox AND u.class = h.class AND u.starts = h.starts AND h.bytes <> 0;
END $$;

-- Hides everything that a mailbox or custom domain has up to a position, which is that of the stream while its row is
-- held: no mail is on its way to it.
CREATE OR REPLACE FUNCTION purge_owner(p_owner uuid, p_seq bigint, p_now timestamptz) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO purge (inbox, owner, address, up_to_seq, owner_removed, created_at)
    VALUES (p_owner, p_owner, '', p_seq, true, p_now)
    ON CONFLICT DO NOTHING
$$;

-- Hides everything that a mailbox or custom domain ever has, which is removed for good. The caller then waits for the
-- mail in flight (wait_for_mail), so that none is stored after its transaction.
CREATE OR REPLACE FUNCTION purge_removed(p_owner uuid, p_now timestamptz) RETURNS void LANGUAGE sql AS $$
    SELECT purge_owner(p_owner, 9223372036854775807, p_now)
$$;

-- Deletes up to p_limit messages of one class that a purge hides, of some 64 MiB; returns how many. Where it hides none
-- any more it is deleted itself, and the answer is 0; so it is while another worker carries it out.
CREATE OR REPLACE FUNCTION purge_batch(p_id uuid, p_limit integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_purge record;
    v_class smallint;
    v_ids   uuid[];
BEGIN
    SELECT p.inbox, p.owner, p.address, p.up_to_seq INTO v_purge FROM purge p WHERE p.id = p_id FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    -- Nobody waits for the disk after it: a crash may only bring back what the purge still hides.
    PERFORM set_config('synchronous_commit', 'off', true);
    FOR v_class IN SELECT DISTINCT class FROM message_partition ORDER BY 1 LOOP
        -- Mail of a custom domain has the keys of its addresses as inboxes.
        v_ids := ARRAY(
            SELECT x.id
              FROM (SELECT h.id, sum(h.size) OVER (ROWS UNBOUNDED PRECEDING) - h.size AS before
                      FROM (SELECT m.id, m.size FROM message m
                             WHERE m.class = v_class AND m.inbox = v_purge.inbox AND m.owner = v_purge.owner
                               AND m.seq <= v_purge.up_to_seq AND v_purge.address = ''
                            UNION ALL
                            SELECT m.id, m.size FROM message m
                             WHERE m.class = v_class AND m.inbox = v_purge.inbox AND m.owner = v_purge.owner
                               AND m.seq <= v_purge.up_to_seq
                               AND m.address = v_purge.address AND m.address LIKE '%+%'
                            UNION ALL
                            SELECT m.id, m.size FROM message m
                             WHERE m.class = v_class AND m.owner_kind = 2 AND m.owner = v_purge.owner
                               AND v_purge.inbox = v_purge.owner AND m.seq <= v_purge.up_to_seq
                            LIMIT p_limit) h) x
             WHERE x.before < 67108864);
        IF cardinality(v_ids) > 0 THEN
            -- One class a transaction: locks of two would not be in the order of a delivery.
            PERFORM delete_messages(v_class, v_ids);
            RETURN cardinality(v_ids);
        END IF;
    END LOOP;
    DELETE FROM purge WHERE id = p_id;
    RETURN 0;
END $$;
