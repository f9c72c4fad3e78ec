-- Pro sessions: ended.

-- Ends a session of a token; false where it has ended already.
CREATE OR REPLACE FUNCTION end_session(p_session uuid, p_token uuid, p_tenant uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ended_session (id) VALUES (p_session) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM record_audit('revoked', 'session', p_token::text, p_tenant);
    RETURN true;
END $$;
