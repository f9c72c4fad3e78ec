-- Where the access that a row gives comes from (column `origin`): the Kubernetes object that declares the row, or the
-- ApiToken whose token made it over HTTP. It ends with the grant of the object's namespace (kubernetes/grant.sql).

-- The origin of a token that is used to change something; raises TM004 where the token ended meanwhile. The token is
-- locked to the end of the transaction, so what ends it later finds what it made.
CREATE OR REPLACE FUNCTION token_origin(p_token uuid) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    v_origin uuid;
BEGIN
    SELECT k.origin INTO v_origin FROM api_token k WHERE k.id = p_token AND k.revoked_at IS NULL FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the token has ended' USING ERRCODE = 'TM004';
    END IF;
    RETURN v_origin;
END $$;

-- Sets the origin of a new row of a tenant, from who makes it (`tempmail.actor`): an object, or a token that has one.
CREATE OR REPLACE FUNCTION set_origin() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_actor  CONSTANT text := current_setting('tempmail.actor', true);
    v_object CONSTANT text := substring(v_actor FROM '^object (.+)$');
    v_token  CONSTANT text := substring(v_actor FROM '^(?:session of )?token (.+)$');
BEGIN
    IF v_object IS NOT NULL THEN
        NEW.origin := v_object::uuid;
    ELSIF v_token IS NOT NULL THEN
        NEW.origin := token_origin(v_token::uuid);
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER token_origin BEFORE INSERT ON api_token
    FOR EACH ROW EXECUTE FUNCTION set_origin();
CREATE OR REPLACE TRIGGER webhook_origin BEFORE INSERT ON webhook
    FOR EACH ROW EXECUTE FUNCTION set_origin();
CREATE OR REPLACE TRIGGER domain_origin BEFORE INSERT ON domain
    FOR EACH ROW WHEN (NEW.tenant IS NOT NULL) EXECUTE FUNCTION set_origin();
CREATE OR REPLACE TRIGGER mailbox_origin BEFORE INSERT ON mailbox
    FOR EACH ROW WHEN (NEW.tenant IS NOT NULL) EXECUTE FUNCTION set_origin();
