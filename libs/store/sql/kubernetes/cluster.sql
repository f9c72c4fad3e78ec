-- Clusters that are gone (table `cluster`): their rows are released, and objects of other clusters adopt them. Both
-- functions need the login of the schema's owner.

-- Releases the rows of a cluster. Its operator, if one runs, is fenced out. Tokens are revoked; webhooks, mailboxes, custom
-- domains and tenants are inactive until an object of another cluster adopts them; system domains serve on. Refused where
-- the cluster's operator was seen in the last 10 minutes, unless p_force. o_outcome is released, not_found,
-- already_released or alive; o_objects counts the objects whose rows are released.
CREATE OR REPLACE FUNCTION release_cluster(
    p_cluster uuid, p_force boolean, p_now timestamptz,
    OUT o_outcome text, OUT o_heartbeat_at timestamptz, OUT o_objects bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_released_at timestamptz;
    v_epoch       bigint;
BEGIN
    -- Waits for transactions of its operator.
    SELECT c.released_at, c.heartbeat_at INTO v_released_at, o_heartbeat_at
      FROM cluster c WHERE c.id = p_cluster FOR UPDATE;
    o_outcome := CASE
        WHEN NOT FOUND THEN 'not_found'
        WHEN v_released_at IS NOT NULL THEN 'already_released'
        WHEN o_heartbeat_at > now() /* lease */ - interval '10 minutes' AND NOT p_force THEN 'alive'
        ELSE 'released' END;
    SELECT count(*) INTO o_objects FROM resource WHERE cluster = p_cluster;
    IF o_outcome <> 'released' THEN
        RETURN;
    END IF;
    UPDATE operator SET epoch = epoch + 1 RETURNING epoch INTO v_epoch;
    UPDATE cluster SET epoch = v_epoch, released_at = p_now WHERE id = p_cluster;
    -- What their tokens made over HTTP ends, too.
    PERFORM end_origin(r.uid, p_now) FROM resource r WHERE r.cluster = p_cluster AND r.kind = 'ApiToken';
    UPDATE webhook w SET active = false
      FROM resource r WHERE r.cluster = p_cluster AND r.kind = 'Webhook' AND w.id = r.row_id AND w.active;
    UPDATE mailbox b SET active = false, password_epoch = b.password_epoch + 1
      FROM resource r
     WHERE r.cluster = p_cluster AND r.kind = 'Mailbox' AND b.id = r.row_id AND b.active AND b.removed_at IS NULL;
    UPDATE domain d SET active = false, verify_status = 'pending', failure_reason = NULL, serves = false,
                        next_check_at = NULL, claimed_until = NULL
      FROM resource r
     WHERE r.cluster = p_cluster AND r.kind = 'CustomDomain' AND d.id = r.row_id AND d.active AND d.removed_at IS NULL;
    UPDATE tenant t SET suspended = true
      FROM resource r
     WHERE r.cluster = p_cluster AND r.kind = 'Tenant' AND t.id = r.row_id AND NOT t.suspended AND t.removed_at IS NULL;
    PERFORM record_audit('released', 'setting', 'cluster ' || p_cluster, NULL);
END $$;

-- Lets an operator of a released cluster lead again. Rows that no other object has adopted are that cluster's again; its
-- operator makes their credentials new, and so it deletes webhooks here, whose secrets are in the cluster still. Answers
-- admitted, not_found or not_released.
CREATE OR REPLACE FUNCTION admit_cluster(p_cluster uuid) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    UPDATE cluster SET released_at = NULL WHERE id = p_cluster AND released_at IS NOT NULL;
    IF NOT FOUND THEN
        RETURN CASE WHEN EXISTS (SELECT FROM cluster WHERE id = p_cluster) THEN 'not_released' ELSE 'not_found' END;
    END IF;
    DELETE FROM webhook w USING resource r WHERE r.cluster = p_cluster AND r.kind = 'Webhook' AND w.id = r.row_id;
    PERFORM record_audit('admitted', 'setting', 'cluster ' || p_cluster, NULL);
    RETURN 'admitted';
END $$;
