-- Messages as their readers see them. A partition that a plan names costs time to open even where nothing is read
-- from it. In a function of its own the class and the oldest id are known when the plan starts, and the other
-- partitions are never opened. Connections of the roles use generic plans: each is planned once a connection.

-- Messages that no purge hides. No other place decides what a purge hides. `OFFSET` keeps it a look-up for each
-- message: a join would be planned for the few rows that the table mostly has.
CREATE OR REPLACE VIEW visible_message AS
    SELECT m.* FROM message m
     WHERE NOT EXISTS (SELECT FROM purge p
                        WHERE p.inbox IN (m.inbox, m.owner) AND p.owner = m.owner
                          AND p.address IN ('', m.address) AND p.up_to_seq >= m.seq OFFSET 0);

-- Visible messages that their tenant may read: of its mailboxes and custom domains while their domain serves. Whether
-- an owner serves is looked up for each message that is read: EXISTS would make a table of all that do.
CREATE OR REPLACE VIEW served_message AS
    SELECT m.* FROM visible_message m
     WHERE CASE m.owner_kind
               WHEN 1 THEN (SELECT b.removed_at IS NULL AND b.tenant = m.tenant AND d.serves
                            FROM mailbox b JOIN domain d ON d.id = b.domain WHERE b.id = m.owner)
               WHEN 2 THEN (SELECT d.serves FROM domain d WHERE d.id = m.owner)
               ELSE true END;

-- Unexpired messages of an inbox in one class: those after the position p_seq, oldest first, or those before it, newest
-- first. p_address: empty for all messages of the inbox, else those to that exact address.
CREATE OR REPLACE FUNCTION inbox_messages(
    p_class smallint, p_now timestamptz, p_inbox uuid, p_owner uuid, p_address text, p_newest_first boolean,
    p_seq bigint, p_limit bigint
) RETURNS SETOF visible_message LANGUAGE plpgsql STABLE ROWS 20 AS $$
DECLARE v_oldest CONSTANT uuid := time_id(p_now - make_interval(hours => p_class));
BEGIN
    IF p_address LIKE '%+%' THEN
        -- By the index of tagged mail.
        IF p_newest_first THEN
            RETURN QUERY SELECT m.* FROM visible_message m
             WHERE m.class = p_class AND m.id >= v_oldest AND m.inbox = p_inbox AND m.owner = p_owner
               AND m.address = p_address AND m.address LIKE '%+%' AND m.seq < p_seq
             ORDER BY m.seq DESC LIMIT p_limit;
        ELSE
            RETURN QUERY SELECT m.* FROM visible_message m
             WHERE m.class = p_class AND m.id >= v_oldest AND m.inbox = p_inbox AND m.owner = p_owner
               AND m.address = p_address AND m.address LIKE '%+%' AND m.seq > p_seq
             ORDER BY m.seq LIMIT p_limit;
        END IF;
    ELSIF NOT p_newest_first THEN
        RETURN QUERY SELECT m.* FROM visible_message m
         WHERE m.class = p_class AND m.id >= v_oldest AND m.inbox = p_inbox AND m.owner = p_owner
           AND (p_address = '' OR m.address = p_address) AND m.seq > p_seq
         ORDER BY m.seq LIMIT p_limit;
    ELSIF EXISTS (SELECT FROM purge p WHERE p.inbox IN (p_inbox, p_owner) AND p.owner = p_owner) THEN
        RETURN QUERY SELECT m.* FROM visible_message m
         WHERE m.class = p_class AND m.id >= v_oldest AND m.inbox = p_inbox AND m.owner = p_owner
           AND (p_address = '' OR m.address = p_address) AND m.seq < p_seq
         ORDER BY m.seq DESC LIMIT p_limit;
    ELSE
        -- All are visible. To look for the purge of each would be most of what a long list costs.
        RETURN QUERY SELECT m.* FROM message m
         WHERE m.class = p_class AND m.id >= v_oldest AND m.inbox = p_inbox AND m.owner = p_owner
           AND (p_address = '' OR m.address = p_address) AND m.seq < p_seq
         ORDER BY m.seq DESC LIMIT p_limit;
    END IF;
END $$;

-- Unexpired messages of a tenant in one class, in the same orders: of its mailboxes, and of every address under its
-- custom domains while they serve.
CREATE OR REPLACE FUNCTION tenant_messages(
    p_class smallint, p_now timestamptz, p_tenant uuid, p_newest_first boolean, p_seq bigint, p_limit bigint
) RETURNS SETOF visible_message LANGUAGE plpgsql STABLE ROWS 20 AS $$
DECLARE v_oldest CONSTANT uuid := time_id(p_now - make_interval(hours => p_class));
BEGIN
    IF p_newest_first THEN
        RETURN QUERY SELECT m.* FROM served_message m
         WHERE m.class = p_class AND m.id >= v_oldest AND m.tenant = p_tenant AND m.seq < p_seq
         ORDER BY m.seq DESC LIMIT p_limit;
    ELSE
        RETURN QUERY SELECT m.* FROM served_message m
         WHERE m.class = p_class AND m.id >= v_oldest AND m.tenant = p_tenant AND m.seq > p_seq
         ORDER BY m.seq LIMIT p_limit;
    END IF;
END $$;
