-- The sums of partitions count what the disk holds (sql/mail/usage.sql): the data of a mail once and a row for each
-- message, in place of each message's size. They are changed by the difference at one moment, so mail that programs of
-- the version before store meanwhile is counted as they count it, until its partition expires.
DO $$
DECLARE
    v_class  smallint[];
    v_starts timestamptz[];
    v_all    bigint[];
    v_free   bigint[];
    v_shared bigint[];
BEGIN
    -- An empty database has no functions yet.
    IF NOT EXISTS (SELECT FROM message_partition) THEN
        RETURN;
    END IF;
    -- First the sums, then the rows, which all mail changes.
    SELECT array_agg(x.class), array_agg(x.starts), array_agg(x.bytes), array_agg(x.free), array_agg(x.shared)
      INTO v_class, v_starts, v_all, v_free, v_shared
      FROM (SELECT p.class, p.starts, (coalesce(s.bytes, 0) - p.bytes)::bigint AS bytes,
                   coalesce(s.free, 0)::bigint AS free, (coalesce(s.shared, 0) - p.shared_bytes)::bigint AS shared
              FROM message_partition p
              LEFT JOIN (SELECT g.class, g.starts, sum(g.data + g.messages * 1024) AS bytes,
                                sum(CASE WHEN g.free > 0 THEN g.data + g.free * 1024 ELSE 0 END) AS free,
                                sum(CASE WHEN g.shared > 0 THEN g.data + g.shared * 1024 ELSE 0 END) AS shared
                           FROM (SELECT m.class, partition_start(m.class, id_time(m.mail)) AS starts,
                                        coalesce(r.stored_bytes, 0) AS data, count(*) AS messages,
                                        count(*) FILTER (WHERE m.tenant IS NULL) AS free,
                                        count(*) FILTER (WHERE m.owner_kind = 0) AS shared
                                   FROM message m
                                   LEFT JOIN raw r ON r.class = m.class AND r.mail = m.mail AND r.part = 0
                                  GROUP BY m.class, m.mail, r.stored_bytes) g
                          GROUP BY 1, 2) s ON s.class = p.class AND s.starts = p.starts) x;
    UPDATE message_partition p
       SET bytes = p.bytes + x.bytes, free_bytes = p.free_bytes + x.free, shared_bytes = p.shared_bytes + x.shared
      FROM unnest(v_class, v_starts, v_all, v_free, v_shared) AS x (class, starts, bytes, free, shared)
     WHERE p.class = x.class AND p.starts = x.starts;
END $$;
