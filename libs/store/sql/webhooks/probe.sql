-- The one event that a webhook which fails is tried with.

-- The oldest event that was never tried, of the mailbox with the fewest failures since the last success; if there is none,
-- the one that is due first. Null if there is none either. Not one of p_except, and none of a mailbox whose domain does
-- not serve.
CREATE OR REPLACE FUNCTION next_probe(p_webhook uuid, p_except bigint[], p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_failing uuid[] := (SELECT failing_mailboxes FROM webhook WHERE id = p_webhook);
    v_seq     bigint;
BEGIN
    -- Mostly the oldest ones have one of a mailbox without failures.
    SELECT e.seq INTO v_seq
      FROM (SELECT e.seq, e.mailbox FROM webhook_event e
             WHERE e.webhook = p_webhook AND e.due_at <= '-infinity'
             ORDER BY e.due_at, e.seq LIMIT 100) e
     WHERE e.seq <> ALL (p_except) AND e.mailbox <> ALL (v_failing)
       AND coalesce((SELECT d.serves FROM mailbox b JOIN domain d ON d.id = b.domain
                      WHERE b.id = e.mailbox AND b.removed_at IS NULL), true)
     ORDER BY e.seq LIMIT 1;
    IF v_seq IS NOT NULL THEN RETURN v_seq; END IF;

    -- One step in the index a mailbox.
    WITH RECURSIVE oldest (mailbox, seq) AS (
        (SELECT e.mailbox, e.seq FROM webhook_event e
          WHERE e.webhook = p_webhook AND e.due_at = '-infinity' AND e.seq <> ALL (p_except)
          ORDER BY e.mailbox, e.seq LIMIT 1)
        UNION ALL
        SELECT e.mailbox, e.seq FROM oldest o CROSS JOIN LATERAL (
            SELECT e.mailbox, e.seq FROM webhook_event e
             WHERE e.webhook = p_webhook AND e.due_at = '-infinity' AND e.mailbox > o.mailbox
               AND e.seq <> ALL (p_except)
             ORDER BY e.mailbox, e.seq LIMIT 1) e
    )
    SELECT o.seq INTO v_seq FROM oldest o
     WHERE coalesce((SELECT d.serves FROM mailbox b JOIN domain d ON d.id = b.domain
                      WHERE b.id = o.mailbox AND b.removed_at IS NULL), true)
     ORDER BY cardinality(array_positions(v_failing, o.mailbox)), o.seq LIMIT 1;
    IF v_seq IS NOT NULL THEN RETURN v_seq; END IF;

    RETURN (SELECT e.seq
              FROM (SELECT e.seq, e.mailbox, e.due_at FROM webhook_event e
                     WHERE e.webhook = p_webhook AND e.due_at > '-infinity' AND e.due_at <= p_now
                     ORDER BY e.due_at, e.seq LIMIT 1000) e
             WHERE e.seq <> ALL (p_except)
               AND coalesce((SELECT d.serves FROM mailbox b JOIN domain d ON d.id = b.domain
                              WHERE b.id = e.mailbox AND b.removed_at IS NULL), true)
             ORDER BY e.due_at, e.seq LIMIT 1);
END $$;
