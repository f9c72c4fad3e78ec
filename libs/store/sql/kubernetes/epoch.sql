-- The epochs of the operators that lead, one in each cluster (table `cluster`).

-- First in every function and statement by which an operator writes. True if p_epoch is the current epoch of a cluster,
-- which it then stays to the end of the transaction; else raises TM001. An operator that becomes the leader, and a release
-- of the cluster, wait for transactions that locked the previous epoch. The object p_uid is the actor of what the
-- transaction changes.
CREATE OR REPLACE FUNCTION lock_epoch(p_epoch bigint, p_uid uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('tempmail.actor', 'object ' || p_uid, true);
    PERFORM FROM cluster WHERE epoch = p_epoch FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another operator leads' USING ERRCODE = 'TM001';
    END IF;
    RETURN true;
END $$;

-- Starts a new epoch of a cluster, which ends that of every other operator of it; null if the cluster is released.
CREATE OR REPLACE FUNCTION acquire_epoch(p_cluster uuid) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_epoch bigint;
BEGIN
    INSERT INTO cluster (id) VALUES (p_cluster) ON CONFLICT (id) DO NOTHING;
    PERFORM FROM cluster WHERE id = p_cluster AND released_at IS NULL FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    UPDATE operator SET epoch = epoch + 1 RETURNING epoch INTO v_epoch;
    UPDATE cluster SET epoch = v_epoch, heartbeat_at = now() /* lease */ WHERE id = p_cluster;
    RETURN v_epoch;
END $$;

-- Records that the operator of an epoch still leads; raises TM001 if it does not. It does not lock the epoch first: a
-- shared lock that is raised to an exclusive one could be a deadlock with the next leader.
CREATE OR REPLACE FUNCTION record_heartbeat(p_epoch bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE cluster SET heartbeat_at = now() /* lease */ WHERE epoch = p_epoch;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another operator leads' USING ERRCODE = 'TM001';
    END IF;
END $$;
