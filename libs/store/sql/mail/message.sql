-- Messages as their readers see them. A partition that a plan names costs time to open even where nothing is read
-- from it. In a function of its own the class and the oldest id are known when the plan starts, and the other
-- partitions are never opened. Connections of the roles use generic plans: each is planned once a connection.
--
-- Columns are named, in views and in results of functions: what a later schema adds to a table is not seen here.
-- A function names them in its statements, too: a call waits for the lock of a view that gets a column, and its caller
-- expects the columns of before.

-- Messages that no purge hides. No other place decides what a purge hides. `OFFSET` keeps it a look-up for each
-- message: a join would be planned for the few rows that the table mostly has.
CREATE OR REPLACE VIEW visible_message AS
    SELECT m.id, m.inbox, m.owner, m.mail, m.tenant, m.seq, m.size, m.class, m.owner_kind, m.single_recipient,
           m.is_read, m.address, m.sender, m.from_text, m.from_email, m.subject, m.preview
      FROM message m
     WHERE NOT EXISTS (SELECT FROM purge p
                        WHERE p.inbox IN (m.inbox, m.owner) AND p.owner = m.owner
                          AND p.address IN ('', m.address) AND p.up_to_seq >= m.seq OFFSET 0);

-- Visible messages that their tenant may read: of its mailboxes and custom domains while their domain serves. Whether
-- an owner serves is looked up for each message that is read: EXISTS would make a table of all that do.
CREATE OR REPLACE VIEW served_message AS
    SELECT m.id, m.inbox, m.owner, m.mail, m.tenant, m.seq, m.size, m.class, m.owner_kind, m.single_recipient,
           m.is_read, m.address, m.sender, m.from_text, m.from_email, m.subject, m.preview
      FROM visible_message m
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
) RETURNS TABLE (
    id uuid, inbox uuid, owner uuid, mail uuid, tenant uuid, seq bigint, size integer, class smallint,
    owner_kind smallint, single_recipient boolean, is_read boolean, address text, sender text, from_text text,
    from_email text, subject text, preview text
) LANGUAGE plpgsql STABLE ROWS 20 AS $$
DECLARE v_oldest CONSTANT uuid := time_id(p_now - make_interval(hours => p_class));
BEGIN
    IF p_address LIKE '%+%' THEN
        -- By the index of tagged mail.
        IF p_newest_first THEN
            RETURN QUERY
                SELECT m.id, m.inbox, m.owner, m.mail, m.tenant, m.seq, m.size, m.class, m.owner_kind, m.single_recipient,
                       m.is_read, m.address, m.sender, m.from_text, m.from_email, m.subject, m.preview
                  FROM visible_message m
                 WHERE m.class = p_class AND m.id >= v_oldest AND m.inbox = p_inbox AND m.owner = p_owner
                   AND m.address = p_address AND m.address LIKE '%+%' AND m.seq < p_seq
                 ORDER BY m.seq DESC LIMIT p_limit;
        ELSE
            RETURN QUERY
                SELECT m.id, m.inbox, m.owner, m.mail, m.tenant, m.seq, m.size, m.class, m.owner_kind, m.single_recipient,
                       m.is_read, m.address, m.sender, m.from_text, m.from_email, m.subject, m.preview
                  FROM visible_message m
                 WHERE m.class = p_class AND m.id >= v_oldest AND m.inbox = p_inbox AND m.owner = p_owner
                   AND m.address = p_address AND m.address LIKE '%+%' AND m.seq > p_seq
                 ORDER BY m.seq LIMIT p_limit;
        END IF;
    ELSIF NOT p_newest_first THEN
        RETURN QUERY
            SELECT m.id, m.inbox, m.owner, m.mail, m.tenant, m.seq, m.size, m.class, m.owner_kind, m.single_recipient,
                   m.is_read, m.address, m.sender, m.from_text, m.from_email, m.subject, m.preview
              FROM visible_message m
             WHERE m.class = p_class AND m.id >= v_oldest AND m.inbox = p_inbox AND m.owner = p_owner
               AND (p_address = '' OR m.address = p_address) AND m.seq > p_seq
             ORDER BY m.seq LIMIT p_limit;
    ELSIF EXISTS (SELECT FROM purge p WHERE p.inbox IN (p_inbox, p_owner) AND p.owner = p_owner) THEN
        RETURN QUERY
            SELECT m.id, m.inbox, m.owner, m.mail, m.tenant, m.seq, m.size, m.class, m.owner_kind, m.single_recipient,
                   m.is_read, m.address, m.sender, m.from_text, m.from_email, m.subject, m.preview
              FROM visible_message m
             WHERE m.class = p_class AND m.id >= v_oldest AND m.inbox = p_inbox AND m.owner = p_owner
               AND (p_address = '' OR m.address = p_address) AND m.seq < p_seq
             ORDER BY m.seq DESC LIMIT p_limit;
    ELSE
        -- All are visible. To look for the purge of each would be most of what a long list costs.
        RETURN QUERY
            SELECT m.id, m.inbox, m.owner, m.mail, m.tenant, m.seq, m.size, m.class, m.owner_kind, m.single_recipient,
                   m.is_read, m.address, m.sender, m.from_text, m.from_email, m.subject, m.preview
              FROM message m
             WHERE m.class = p_class AND m.id >= v_oldest AND m.inbox = p_inbox AND m.owner = p_owner
               AND (p_address = '' OR m.address = p_address) AND m.seq < p_seq
             ORDER BY m.seq DESC LIMIT p_limit;
    END IF;
END $$;

-- Positions of an inbox's unexpired messages in one class before the position p_seq, newest first: what a later page of a
-- list skips, and what is counted. Rows are wide, and of most of them no more is wanted.
CREATE OR REPLACE FUNCTION inbox_positions(
    p_class smallint, p_now timestamptz, p_inbox uuid, p_owner uuid, p_seq bigint, p_limit bigint
) RETURNS SETOF bigint LANGUAGE plpgsql STABLE ROWS 20 AS $$
DECLARE v_oldest CONSTANT uuid := time_id(p_now - make_interval(hours => p_class));
BEGIN
    IF EXISTS (SELECT FROM purge p WHERE p.inbox IN (p_inbox, p_owner) AND p.owner = p_owner) THEN
        RETURN QUERY SELECT m.seq FROM visible_message m
         WHERE m.class = p_class AND m.id >= v_oldest AND m.inbox = p_inbox AND m.owner = p_owner AND m.seq < p_seq
         ORDER BY m.seq DESC LIMIT p_limit;
    ELSE
        -- All are visible, as in `inbox_messages`.
        RETURN QUERY SELECT m.seq FROM message m
         WHERE m.class = p_class AND m.id >= v_oldest AND m.inbox = p_inbox AND m.owner = p_owner AND m.seq < p_seq
         ORDER BY m.seq DESC LIMIT p_limit;
    END IF;
END $$;

-- Unexpired messages of a tenant in one class, in the same orders: of its mailboxes, and of every address under its
-- custom domains while they serve.
CREATE OR REPLACE FUNCTION tenant_messages(
    p_class smallint, p_now timestamptz, p_tenant uuid, p_newest_first boolean, p_seq bigint, p_limit bigint
) RETURNS TABLE (
    id uuid, inbox uuid, owner uuid, mail uuid, tenant uuid, seq bigint, size integer, class smallint,
    owner_kind smallint, single_recipient boolean, is_read boolean, address text, sender text, from_text text,
    from_email text, subject text, preview text
) LANGUAGE plpgsql STABLE ROWS 20 AS $$
DECLARE v_oldest CONSTANT uuid := time_id(p_now - make_interval(hours => p_class));
BEGIN
    IF p_newest_first THEN
        RETURN QUERY
            SELECT m.id, m.inbox, m.owner, m.mail, m.tenant, m.seq, m.size, m.class, m.owner_kind, m.single_recipient,
                   m.is_read, m.address, m.sender, m.from_text, m.from_email, m.subject, m.preview
              FROM served_message m
             WHERE m.class = p_class AND m.id >= v_oldest AND m.tenant = p_tenant AND m.seq < p_seq
             ORDER BY m.seq DESC LIMIT p_limit;
    ELSE
        RETURN QUERY
            SELECT m.id, m.inbox, m.owner, m.mail, m.tenant, m.seq, m.size, m.class, m.owner_kind, m.single_recipient,
                   m.is_read, m.address, m.sender, m.from_text, m.from_email, m.subject, m.preview
              FROM served_message m
             WHERE m.class = p_class AND m.id >= v_oldest AND m.tenant = p_tenant AND m.seq > p_seq
             ORDER BY m.seq LIMIT p_limit;
    END IF;
END $$;

-- Positions of a tenant's unexpired messages in one class before the position p_seq, in no order: at least the p_limit
-- newest, if it has as many. They are read in blocks. Of an inbox that no purge concerns one message in the block is looked
-- at for all: to look at each would be most of what a long list costs.
CREATE OR REPLACE FUNCTION tenant_positions(
    p_class smallint, p_now timestamptz, p_tenant uuid, p_seq bigint, p_limit bigint
) RETURNS TABLE (seq bigint, is_read boolean) LANGUAGE plpgsql STABLE ROWS 20 AS $$
DECLARE
    v_oldest CONSTANT uuid := time_id(p_now - make_interval(hours => p_class));
    -- The block has up to p_limit messages before it, the hidden ones included.
    v_before bigint := p_seq;
    v_found  bigint;
    v_left   bigint := p_limit;
BEGIN
    LOOP
        RETURN QUERY WITH block AS MATERIALIZED (
            SELECT m.id, m.seq, m.is_read, m.inbox, m.owner FROM message m
             WHERE m.class = p_class AND m.id >= v_oldest AND m.tenant = p_tenant AND m.seq < v_before
             ORDER BY m.seq DESC LIMIT p_limit
        ), inbox AS MATERIALIZED (
            SELECT i.inbox, i.owner,
                   EXISTS (SELECT FROM purge p WHERE p.inbox IN (i.inbox, i.owner) AND p.owner = i.owner OFFSET 0) AS purged,
                   EXISTS (SELECT FROM served_message s WHERE s.class = p_class AND s.id = i.id OFFSET 0) AS served
              FROM (SELECT DISTINCT ON (b.inbox, b.owner) b.inbox, b.owner, b.id FROM block b) i
        )
        SELECT b.seq, b.is_read FROM block b JOIN inbox i ON i.inbox = b.inbox AND i.owner = b.owner
         WHERE CASE WHEN i.purged
                    THEN EXISTS (SELECT FROM served_message s WHERE s.class = p_class AND s.id = b.id OFFSET 0)
                    ELSE i.served END;
        GET DIAGNOSTICS v_found = ROW_COUNT;
        v_left := v_left - v_found;
        EXIT WHEN v_left <= 0;
        -- Some are hidden, or there are no more.
        v_before := (SELECT m.seq FROM message m
                      WHERE m.class = p_class AND m.id >= v_oldest AND m.tenant = p_tenant AND m.seq < v_before
                      ORDER BY m.seq DESC OFFSET p_limit - 1 LIMIT 1);
        EXIT WHEN v_before IS NULL;
    END LOOP;
END $$;
