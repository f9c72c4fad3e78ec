-- The epoch of the operator that leads.

-- First in every function and statement by which an operator writes. True if p_epoch is the current epoch, which it then
-- stays to the end of the transaction; else raises TM001. An operator that becomes the leader waits for transactions that
-- locked the previous epoch. The object p_uid is the actor of what the transaction changes.
CREATE OR REPLACE FUNCTION lock_epoch(p_epoch bigint, p_uid uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('tempmail.actor', 'object ' || p_uid, true);
    PERFORM FROM operator WHERE epoch = p_epoch FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another operator leads' USING ERRCODE = 'TM001';
    END IF;
    RETURN true;
END $$;
