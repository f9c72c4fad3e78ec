-- The key of verify tokens.

-- Keeps this sealed key unless there is one already; returns the one that is kept. Of several processes that start at
-- once, the first one wins: the second statement sees what it committed.
CREATE OR REPLACE FUNCTION ensure_verify_token_key(p_kid text, p_sealed bytea, OUT o_kid text, OUT o_sealed bytea)
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO verify_token_key (kid, sealed) VALUES (p_kid, p_sealed) ON CONFLICT DO NOTHING;
    SELECT k.kid, k.sealed INTO o_kid, o_sealed FROM verify_token_key k;
END $$;
