-- What Kubernetes resources stand for: who leads the operators, which row an object has, and how
-- rows are declared by objects. Business time is always an argument.

-- Who leads ---------------------------------------------------------------------

-- Each operator that begins to lead raises the epoch; what an earlier one still writes is refused.
CREATE TABLE operator (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    epoch bigint NOT NULL
);
INSERT INTO operator VALUES (true, 0);

-- First in every function that an operator calls. A leader that begins waits for what it finds
-- under way.
CREATE FUNCTION hold_epoch(p_epoch bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM operator WHERE epoch = p_epoch FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another operator leads' USING ERRCODE = 'TM001';
    END IF;
END $$;

-- Objects and rows ----------------------------------------------------------------

CREATE TABLE resource (
    uid             uuid PRIMARY KEY,
    cluster         uuid NOT NULL,
    kind            text NOT NULL CHECK (kind IN ('Tenant', 'SystemDomain', 'CustomDomain', 'Webhook', 'ApiToken', 'Mailbox')),
    namespace       text,
    name            text NOT NULL,
    thing           uuid UNIQUE,
    retained        boolean NOT NULL,
    verify_handled  text,
    rotate_handled  text,
    reenable_handled text,
    missing_since   timestamptz
);
CREATE INDEX resource_name ON resource (cluster, kind, name);
COMMENT ON TABLE resource IS 'the Kubernetes objects that an operator has seen and not yet released';
COMMENT ON COLUMN resource.uid IS 'metadata.uid: an object that is made again under its name is another one';
COMMENT ON COLUMN resource.cluster IS 'metadata.uid of the namespace kube-system: several clusters may share a database';
COMMENT ON COLUMN resource.thing IS 'the row that the object manages: id of a tenant, domain, webhook, api_token or mailbox';
COMMENT ON COLUMN resource.retained IS 'what the object said last about its deletion: the row stays, or goes along';
COMMENT ON COLUMN resource.rotate_handled IS 'value of the annotation that was carried out last';
COMMENT ON COLUMN resource.missing_since IS 'the object is gone, and nobody released its row';

ALTER TABLE tenant ADD COLUMN managed_by text NOT NULL DEFAULT 'api' CHECK (managed_by IN ('api', 'kubernetes'));

-- Notes what an object is, when that changed. Its row comes later.
CREATE FUNCTION record_resource(
    p_epoch bigint, p_uid uuid, p_cluster uuid, p_kind text, p_namespace text, p_name text, p_retained boolean
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    INSERT INTO resource (uid, cluster, kind, namespace, name, retained)
    VALUES (p_uid, p_cluster, p_kind, p_namespace, p_name, p_retained)
    ON CONFLICT (uid) DO UPDATE SET retained = excluded.retained, missing_since = NULL;
END $$;

-- Gives an object its row, which no other object has.
CREATE FUNCTION bind_resource(p_uid uuid, p_thing uuid) RETURNS void LANGUAGE sql AS $$
    UPDATE resource SET thing = p_thing WHERE uid = p_uid
$$;

-- Whether an object has a row already.
CREATE FUNCTION is_bound(p_thing uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM resource WHERE thing = p_thing)
$$;

-- Changes that objects show, beside those of rights.
CREATE TRIGGER domain_mirrored AFTER UPDATE ON domain
    FOR EACH ROW WHEN (NEW.managed_by = 'kubernetes'
        AND (OLD.verify_status, OLD.failure_reason, OLD.deadline, OLD.verified_at,
             OLD.txt_found, OLD.txt_seen, OLD.mx_found, OLD.mx_seen)
            IS DISTINCT FROM (NEW.verify_status, NEW.failure_reason, NEW.deadline, NEW.verified_at,
             NEW.txt_found, NEW.txt_seen, NEW.mx_found, NEW.mx_seen))
    EXECUTE FUNCTION note_change();

-- Tenants ---------------------------------------------------------------------------

-- Makes an object's tenant what the object says; makes it first where there is none, or takes over
-- p_adopt. Answers created, adopted, kept, name_taken or not_adoptable.
CREATE FUNCTION declare_tenant(
    p_epoch bigint, p_uid uuid, p_id uuid, p_name text, p_adopt uuid, p_suspended boolean, p_retention_hours smallint,
    p_mailboxes integer, p_domains integer, p_webhooks integer, p_tokens integer, p_mailbox_bytes bigint, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_id     uuid;
    v_answer text := 'kept';
BEGIN
    PERFORM hold_epoch(p_epoch);
    SELECT t.id INTO v_id FROM resource r JOIN tenant t ON t.id = r.thing
     WHERE r.uid = p_uid AND t.removed_at IS NULL;
    IF NOT FOUND THEN
        IF EXISTS (SELECT FROM tenant WHERE name = p_name AND id IS DISTINCT FROM p_adopt) THEN
            RETURN 'name_taken';
        ELSIF p_adopt IS NULL THEN
            INSERT INTO tenant (id, name, managed_by, retention_hours, classes, mailbox_limit, domain_limit,
                                webhook_limit, token_limit, mailbox_bytes, created_at)
            VALUES (p_id, p_name, 'kubernetes', p_retention_hours, ARRAY[p_retention_hours], p_mailboxes,
                    p_domains, p_webhooks, p_tokens, p_mailbox_bytes, p_now);
            v_id := p_id;
            v_answer := 'created';
        ELSE
            UPDATE tenant t SET name = p_name, managed_by = 'kubernetes'
             WHERE t.id = p_adopt AND t.removed_at IS NULL AND NOT is_bound(t.id)
               AND t.id <> '00000000-0000-7000-8000-000000000001'
            RETURNING t.id INTO v_id;
            IF NOT FOUND THEN
                RETURN 'not_adoptable';
            END IF;
            v_answer := 'adopted';
        END IF;
        PERFORM bind_resource(p_uid, v_id);
    END IF;
    UPDATE tenant t
       SET suspended = p_suspended, retention_hours = p_retention_hours,
           classes = CASE WHEN p_retention_hours = ANY (t.classes) THEN t.classes
                          ELSE array_append(t.classes, p_retention_hours) END,
           mailbox_limit = p_mailboxes, domain_limit = p_domains, webhook_limit = p_webhooks,
           token_limit = p_tokens, mailbox_bytes = p_mailbox_bytes
     WHERE t.id = v_id
       AND (t.suspended, t.retention_hours, t.mailbox_limit, t.domain_limit, t.webhook_limit, t.token_limit, t.mailbox_bytes)
           IS DISTINCT FROM (p_suspended, p_retention_hours, p_mailboxes, p_domains, p_webhooks, p_tokens, p_mailbox_bytes);
    RETURN v_answer;
END $$;

-- Lets go of an object's tenant: it is removed, or suspended under a name that leaves its own free.
CREATE FUNCTION release_tenant(p_epoch bigint, p_uid uuid, p_retained boolean, p_now timestamptz, p_hold_days integer)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_id uuid;
BEGIN
    PERFORM hold_epoch(p_epoch);
    SELECT t.id INTO v_id FROM resource r JOIN tenant t ON t.id = r.thing WHERE r.uid = p_uid AND t.removed_at IS NULL;
    IF FOUND AND p_retained THEN
        UPDATE tenant SET suspended = true, managed_by = 'api', name = name || '@' || id WHERE id = v_id;
    ELSIF FOUND THEN
        PERFORM remove_tenant(v_id, p_now, p_hold_days);
    END IF;
    DELETE FROM resource WHERE uid = p_uid;
END $$;

-- Custom domains ----------------------------------------------------------------------

-- Makes an object's custom domain; one that was withheld is pending anew. Answers created, adopted
-- (p_adopt: one that the tenant made over HTTP), kept, restored, taken (by another object), exists
-- (and is not to be adopted), tenant_replaced (it is another tenant's), or what create_custom_domain
-- answers.
CREATE FUNCTION declare_custom_domain(
    p_epoch bigint, p_uid uuid, p_id uuid, p_tenant uuid, p_name text, p_token text, p_adopt boolean,
    p_own_names text[], p_deadline timestamptz, p_next_check_at timestamptz, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_domain domain;
    v_answer text;
BEGIN
    PERFORM hold_epoch(p_epoch);
    SELECT d.* INTO v_domain FROM resource r JOIN domain d ON d.id = r.thing
     WHERE r.uid = p_uid AND d.removed_at IS NULL;
    IF FOUND THEN
        IF v_domain.tenant <> p_tenant THEN
            RETURN 'tenant_replaced';
        ELSIF v_domain.active THEN
            RETURN 'kept';
        END IF;
        UPDATE domain SET active = true, verify_status = 'pending', failure_reason = NULL, lost_days = 0,
                          deadline = p_deadline, next_check_at = p_now
         WHERE id = v_domain.id;
        RETURN 'restored';
    END IF;
    SELECT d.* INTO v_domain FROM domain d
     WHERE d.tenant = p_tenant AND d.name = p_name AND d.removed_at IS NULL FOR NO KEY UPDATE;
    IF FOUND THEN
        IF is_bound(v_domain.id) THEN
            RETURN 'taken';
        ELSIF NOT p_adopt THEN
            RETURN 'exists';
        END IF;
        UPDATE domain SET managed_by = 'kubernetes' WHERE id = v_domain.id;
        PERFORM bind_resource(p_uid, v_domain.id);
        RETURN 'adopted';
    END IF;
    v_answer := create_custom_domain(p_id, p_tenant, p_name, p_token, 'kubernetes', p_own_names, p_deadline,
                                     p_next_check_at, p_now);
    IF v_answer = 'created' THEN
        PERFORM bind_resource(p_uid, p_id);
    END IF;
    RETURN v_answer;
END $$;

-- Begins the verification of an object's domain anew, if it failed; notes that it was asked for.
CREATE FUNCTION restart_custom_domain(p_epoch bigint, p_uid uuid, p_asked text, p_deadline timestamptz, p_now timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    UPDATE domain d SET verify_status = 'pending', failure_reason = NULL, lost_days = 0, deadline = p_deadline,
                        next_check_at = p_now, claimed_until = NULL
      FROM resource r
     WHERE r.uid = p_uid AND d.id = r.thing AND d.verify_status = 'failed' AND d.removed_at IS NULL AND d.active;
    UPDATE resource SET verify_handled = p_asked WHERE uid = p_uid;
END $$;

-- Takes an object's domain out of service and keeps all it has: the object is not accepted any more.
CREATE FUNCTION withhold_custom_domain(p_epoch bigint, p_uid uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    UPDATE domain d SET active = false, verify_status = 'pending', failure_reason = NULL, serves = false,
                        next_check_at = NULL, claimed_until = NULL
      FROM resource r
     WHERE r.uid = p_uid AND d.id = r.thing AND d.active AND d.removed_at IS NULL;
END $$;

-- Lets go of an object's domain: removed with its mailboxes and mail, or its tenant's over HTTP.
CREATE FUNCTION release_custom_domain(p_epoch bigint, p_uid uuid, p_retained boolean, p_now timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_domain domain;
BEGIN
    PERFORM hold_epoch(p_epoch);
    SELECT d.* INTO v_domain FROM resource r JOIN domain d ON d.id = r.thing
     WHERE r.uid = p_uid AND d.removed_at IS NULL;
    IF FOUND AND p_retained THEN
        UPDATE domain SET managed_by = 'api', active = true,
                          next_check_at = CASE WHEN active THEN next_check_at ELSE p_now END
         WHERE id = v_domain.id;
    ELSIF FOUND THEN
        PERFORM remove_custom_domain(v_domain.id, v_domain.tenant, 'kubernetes', p_now);
    END IF;
    DELETE FROM resource WHERE uid = p_uid;
END $$;
