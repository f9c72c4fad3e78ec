-- The sums of scopes (sql/mail/usage.sql): an inbox counts a mail's size once and a row for each further message, and a
-- tenant what the disk holds. They are changed by the difference at one moment, as those of partitions are.
DO $$
DECLARE
    v_scope  uuid[];
    v_class  smallint[];
    v_starts timestamptz[];
    v_bytes  bigint[];
BEGIN
    -- An empty database has no functions yet.
    IF NOT EXISTS (SELECT FROM message_partition) THEN
        RETURN;
    END IF;
    WITH of_inbox AS (
        -- Of those messages that the sums count.
        SELECT m.inbox AS scope, m.class, u.starts, max(m.size) AS size, count(*) AS messages
          FROM message m
          JOIN usage u ON u.scope = m.inbox AND u.class = m.class
                      AND u.starts = partition_start(m.class, id_time(m.mail))
                      AND u.expired_before <= time_id(id_time(m.mail))
         WHERE m.owner_kind <> 0 AND NOT m.single_recipient
           AND NOT EXISTS (SELECT FROM purge p
                            WHERE NOT p.owner_removed AND p.inbox = m.inbox AND p.owner = m.owner
                              AND p.address IN ('', m.address) AND p.up_to_seq >= m.seq)
         GROUP BY m.inbox, m.class, u.starts, m.mail HAVING count(*) > 1
    ), of_tenant AS (
        SELECT g.tenant AS scope, g.class, g.starts, sum(g.data + g.messages * 1024) AS bytes
          FROM (SELECT m.tenant, m.class, partition_start(m.class, id_time(m.mail)) AS starts,
                       coalesce(r.stored_bytes, 0) AS data, count(*) AS messages
                  FROM message m LEFT JOIN raw r ON r.class = m.class AND r.mail = m.mail AND r.part = 0
                 WHERE m.tenant IS NOT NULL
                 GROUP BY m.tenant, m.class, m.mail, r.stored_bytes) g
         GROUP BY 1, 2, 3
    )
    SELECT array_agg(x.scope), array_agg(x.class), array_agg(x.starts), array_agg(x.bytes::bigint)
      INTO v_scope, v_class, v_starts, v_bytes
      FROM (SELECT o.scope, o.class, o.starts,
                   -sum((o.messages - 1) * (o.size - least(o.size, 1024))) AS bytes
              FROM of_inbox o GROUP BY 1, 2, 3
            UNION ALL
            SELECT u.scope, u.class, u.starts, coalesce(o.bytes, 0) - u.bytes
              FROM usage u JOIN tenant t ON t.id = u.scope
              LEFT JOIN of_tenant o ON o.scope = u.scope AND o.class = u.class AND o.starts = u.starts) x;
    UPDATE usage u SET bytes = u.bytes + x.bytes
      FROM unnest(v_scope, v_class, v_starts, v_bytes) AS x (scope, class, starts, bytes)
     WHERE u.scope = x.scope AND u.class = x.class AND u.starts = x.starts;
END $$;
