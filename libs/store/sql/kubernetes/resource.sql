-- Kubernetes objects (table `resource`).

-- Whether p_former is another object of the same cluster, kind, namespace and name than p_uid. Two can't
-- exist at once, so it was deleted without being released.
CREATE OR REPLACE FUNCTION is_predecessor(p_former resource, p_uid uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM resource r
                    WHERE r.uid = p_uid AND r.uid <> p_former.uid AND r.cluster = p_former.cluster
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
