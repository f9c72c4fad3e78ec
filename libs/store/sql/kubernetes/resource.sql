-- Kubernetes objects (table `resource`).

-- Whether p_former is another object than p_uid with the same kind, namespace and name, in the same cluster or in one that
-- is released. Two can't exist at once, so it was deleted without being released, or its cluster is gone.
CREATE OR REPLACE FUNCTION is_predecessor(p_former resource, p_uid uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM resource r
                    WHERE r.uid = p_uid AND r.uid <> p_former.uid
                      AND (r.cluster = p_former.cluster
                           OR EXISTS (SELECT FROM cluster c
                                       WHERE c.id = p_former.cluster AND c.released_at IS NOT NULL))
                      AND r.kind = p_former.kind AND r.name = p_former.name
                      AND r.namespace IS NOT DISTINCT FROM p_former.namespace)
$$;

-- Deletes the row of an object that is deleted; returns the id of the row that it managed, if it had one. The caller
-- releases or removes that row.
CREATE OR REPLACE FUNCTION release_resource(p_epoch bigint, p_uid uuid) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    v_row_id uuid;
BEGIN
    PERFORM lock_epoch(p_epoch, p_uid);
    DELETE FROM resource WHERE uid = p_uid RETURNING row_id INTO v_row_id;
    PERFORM delete_ended_origins(ARRAY[p_uid]);
    RETURN v_row_id;
END $$;

-- Gives the object p_uid, which has no row, that of the object p_former of a released cluster, which has the same kind,
-- namespace and name; returns the id of the row. Null if there is no such object any more: another one adopted its row,
-- or its cluster was admitted again.
CREATE OR REPLACE FUNCTION adopt_released(p_epoch bigint, p_uid uuid, p_former uuid) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    v_row_id uuid;
    v_tenant uuid;
BEGIN
    PERFORM lock_epoch(p_epoch, p_uid);
    PERFORM FROM resource f JOIN cluster c ON c.id = f.cluster
      WHERE f.uid = p_former AND c.released_at IS NOT NULL FOR SHARE OF c;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    DELETE FROM resource f USING resource r
     WHERE f.uid = p_former AND r.uid = p_uid AND r.kind = f.kind AND r.name = f.name
       AND r.namespace IS NOT DISTINCT FROM f.namespace
    RETURNING f.row_id, f.tenant INTO v_row_id, v_tenant;
    IF FOUND THEN
        UPDATE resource SET row_id = v_row_id, tenant = v_tenant WHERE uid = p_uid;
        UPDATE domain SET origin = p_uid WHERE id = v_row_id AND origin = p_former;
        UPDATE mailbox SET origin = p_uid WHERE id = v_row_id AND origin = p_former;
        UPDATE webhook SET origin = p_uid WHERE id = v_row_id AND origin = p_former;
        PERFORM delete_ended_origins(ARRAY[p_former]);
    END IF;
    RETURN v_row_id;
END $$;

-- The same for a webhook, which gets another secret: p_secret, sealed for it, which is not yet delivered to its owner.
CREATE OR REPLACE FUNCTION adopt_released_webhook(
    p_epoch bigint, p_uid uuid, p_former uuid, p_secret bytea, p_now timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_id uuid := adopt_released(p_epoch, p_uid, p_former);
BEGIN
    UPDATE webhook SET secret = p_secret, active = false, failure_count = 0, failed_at = p_now, due_at = '-infinity',
                       rotated = true
     WHERE id = v_id;
END $$;
