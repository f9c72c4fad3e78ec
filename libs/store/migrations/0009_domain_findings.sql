-- What the last check of a custom domain found, for whoever is told what to mend; and domains that
-- are not to be verified for now.

ALTER TABLE domain
    ADD COLUMN txt_found text CHECK (txt_found IN ('right', 'missing', 'mismatch', 'unknown')),
    ADD COLUMN txt_seen text[] NOT NULL DEFAULT '{}' CHECK (cardinality(txt_seen) <= 5),
    ADD COLUMN mx_found text CHECK (mx_found IN ('right', 'missing', 'mismatch', 'unknown')),
    ADD COLUMN mx_seen text[] NOT NULL DEFAULT '{}' CHECK (cardinality(mx_seen) <= 5),
    ADD COLUMN active boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN domain.active IS 'false: the Kubernetes object that manages it is not accepted any more; it stays pending';
COMMENT ON COLUMN domain.txt_found IS 'what the last check found of the TXT record; unknown: no name server answered; null: never looked';
COMMENT ON COLUMN domain.txt_seen IS 'what name servers have in place of the TXT record: bounded, sorted, each once; empty unless it is a mismatch';
COMMENT ON COLUMN domain.mx_found IS 'what the last check found of the MX record; unknown: no name server answered; null: never looked';
COMMENT ON COLUMN domain.mx_seen IS 'what name servers have in place of the MX record: bounded, sorted, each once; empty unless it is a mismatch';

-- As before; what was found is kept, too. Makes a custom domain verified, with all that follows for
-- others. p_absent: the row that serves the name, if the name servers say that its own TXT
-- record is gone; only that row is dispossessed. Answers verified, handed_over, held (another row
-- serves the name), system_domain or gone.
CREATE OR REPLACE FUNCTION verify_custom_domain(
    p_id uuid, p_absent uuid, p_own_names text[], p_next_check_at timestamptz, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_name   text;
    v_token  text;
    v_seq    bigint;
    v_status text;
    v_holder uuid;
    v_former uuid;
BEGIN
    PERFORM lock_domain_names();
    SELECT d.name, d.verify_token INTO v_name, v_token FROM domain d
     WHERE d.id = p_id AND d.tenant IS NOT NULL AND d.removed_at IS NULL AND d.active;
    IF NOT FOUND THEN
        RETURN 'gone';
    END IF;
    IF meets_system_domain(v_name, p_own_names) THEN
        RETURN 'system_domain';
    END IF;
    -- Whoever else ever had the name loses what is left under it: no mail is to be under way.
    IF EXISTS (SELECT FROM domain d WHERE d.name = v_name AND d.id <> p_id AND d.tenant IS NOT NULL
                                      AND d.verified_at IS NOT NULL AND d.removed_at IS NULL) THEN
        SELECT s.seq INTO STRICT v_seq FROM stream s FOR UPDATE;
    END IF;
    PERFORM FROM domain d WHERE d.name = v_name AND d.tenant IS NOT NULL AND d.removed_at IS NULL
      ORDER BY d.id FOR NO KEY UPDATE;
    SELECT d.verify_status INTO v_status FROM domain d WHERE d.id = p_id AND d.removed_at IS NULL;
    IF NOT FOUND THEN
        RETURN 'gone';
    ELSIF v_status = 'verified' THEN
        RETURN 'verified';
    END IF;
    SELECT d.id INTO v_holder FROM domain d WHERE d.name = v_name AND d.serves;
    IF v_holder IS NOT NULL AND v_holder IS DISTINCT FROM p_absent THEN
        RETURN 'held';
    END IF;

    UPDATE domain d
       SET verify_status = 'failed', failure_reason = 'claimed_by_another', serves = false,
           next_check_at = NULL, claimed_until = NULL
     WHERE d.name = v_name AND d.id <> p_id AND d.tenant IS NOT NULL AND d.removed_at IS NULL
       AND d.verify_status <> 'failed';
    -- Every name server that voted has the other's record where the holder's was.
    UPDATE domain d
       SET txt_ok = false, txt_found = 'mismatch', txt_seen = ARRAY['tempmail-verify=' || v_token]
     WHERE d.id = v_holder;
    FOR v_former IN SELECT d.id FROM domain d
                     WHERE d.name = v_name AND d.id <> p_id AND d.tenant IS NOT NULL
                       AND d.verified_at IS NOT NULL AND d.removed_at IS NULL ORDER BY d.id
    LOOP
        PERFORM clear_domain(v_former, v_seq, p_now);
    END LOOP;
    UPDATE domain d
       SET verify_status = 'verified', failure_reason = NULL, serves = true, verified_at = p_now,
           txt_ok = true, txt_found = 'right', txt_seen = '{}', mx_ok = true, mx_found = 'right', mx_seen = '{}',
           lost_days = 0, next_check_at = p_next_check_at, claimed_until = NULL
     WHERE d.id = p_id;
    RETURN CASE WHEN v_holder IS NULL THEN 'verified' ELSE 'handed_over' END;
END $$;

