-- Mailboxes and system domains as objects declare them. Business time is always an argument.

-- Mailboxes -------------------------------------------------------------------

ALTER TABLE mailbox ADD COLUMN active boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN mailbox.active IS 'false: mail is received and nobody signs in, since its password is not with its owner yet, or its object is not accepted any more';

-- Makes a mailbox, whoever manages it. Answers created, tenant_disabled, limit_reached,
-- no_such_domain (it serves no longer, or not this tenant) or address_taken (in use or held).
CREATE FUNCTION create_mailbox(
    p_id uuid, p_domain uuid, p_local_part text, p_tenant uuid, p_free_quota bigint, p_password_hash text,
    p_managed_by text, p_active boolean, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_tenant tenant;
    v_quota  bigint := p_free_quota;
BEGIN
    -- The tenant's lock makes its limit hold.
    IF p_tenant IS NOT NULL THEN
        SELECT * INTO v_tenant FROM tenant WHERE id = p_tenant FOR NO KEY UPDATE;
        IF NOT FOUND OR v_tenant.suspended THEN
            RETURN 'tenant_disabled';
        END IF;
        -- A statement of its own: its snapshot is younger than the lock.
        IF (SELECT count(*) FROM mailbox WHERE tenant = p_tenant AND removed_at IS NULL) >= v_tenant.mailbox_limit THEN
            RETURN 'limit_reached';
        END IF;
        v_quota := v_tenant.mailbox_bytes;
    END IF;
    PERFORM FROM domain WHERE id = p_domain AND serves AND (tenant IS NULL OR tenant = p_tenant) FOR SHARE;
    IF NOT FOUND THEN
        RETURN 'no_such_domain';
    END IF;
    -- A removed mailbox whose hold is over, or whose tenant wants it back, gives up its name.
    UPDATE mailbox SET local_part = '@' || id
     WHERE domain = p_domain AND local_part = p_local_part AND removed_at IS NOT NULL
       AND (held_until <= p_now OR tenant = p_tenant);
    INSERT INTO mailbox (id, domain, local_part, tenant, quota, password_hash, managed_by, active, created_at, seen_at)
    VALUES (p_id, p_domain, p_local_part, p_tenant, v_quota, p_password_hash, p_managed_by, p_active, p_now, p_now)
    ON CONFLICT (domain, local_part) DO NOTHING;
    RETURN CASE WHEN FOUND THEN 'created' ELSE 'address_taken' END;
END $$;

-- Removes a mailbox that p_managed_by manages: gone at once, its mail purged by the worker under
-- p_purge. On a system domain its address is held. False where it is gone already, or another
-- manages it.
CREATE FUNCTION remove_mailbox(p_id uuid, p_purge uuid, p_managed_by text, p_now timestamptz, p_hold_days integer)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_seq bigint;
BEGIN
    -- No mail is under way to it from here on.
    SELECT s.seq INTO STRICT v_seq FROM stream s FOR UPDATE;
    UPDATE mailbox b
       SET removed_at = p_now, held_until = p_now + make_interval(days => p_hold_days),
           password_epoch = b.password_epoch + 1,
           local_part = CASE WHEN d.tenant IS NULL THEN b.local_part ELSE '@' || b.id END
      FROM domain d
     WHERE b.id = p_id AND b.removed_at IS NULL AND b.managed_by = p_managed_by AND d.id = b.domain;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO purge (id, inbox, owner, address, up_to_seq) VALUES (p_purge, p_id, p_id, NULL, v_seq);
    RETURN true;
END $$;

-- Gives an object's mailbox a password that is not with its owner yet, so it is inactive; makes the
-- mailbox first where there is none, or takes it over (p_adopt: one that the tenant made over HTTP).
-- p_asked: the annotation that this carries out. Answers kept, created, adopted, taken (by another
-- object), exists (and is not to be adopted), tenant_replaced (it is another tenant's), or what
-- create_mailbox answers.
CREATE FUNCTION declare_mailbox(
    p_epoch bigint, p_uid uuid, p_id uuid, p_tenant uuid, p_domain text, p_local_part text,
    p_password_hash text, p_adopt boolean, p_asked text, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_mailbox mailbox;
    v_domain  uuid;
    v_answer  text := 'kept';
BEGIN
    PERFORM hold_epoch(p_epoch);
    SELECT b.* INTO v_mailbox FROM resource r JOIN mailbox b ON b.id = r.thing
     WHERE r.uid = p_uid AND b.removed_at IS NULL;
    IF FOUND AND v_mailbox.tenant IS DISTINCT FROM p_tenant THEN
        RETURN 'tenant_replaced';
    ELSIF NOT FOUND THEN
        SELECT d.id INTO v_domain FROM domain d
         WHERE d.name = p_domain AND d.serves AND (d.tenant IS NULL OR d.tenant = p_tenant);
        IF NOT FOUND THEN
            RETURN 'no_such_domain';
        END IF;
        SELECT b.* INTO v_mailbox FROM mailbox b
         WHERE b.domain = v_domain AND b.local_part = p_local_part AND b.tenant = p_tenant AND b.removed_at IS NULL
           FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            v_answer := create_mailbox(p_id, v_domain, p_local_part, p_tenant, NULL, p_password_hash,
                                       'kubernetes', false, p_now);
            IF v_answer <> 'created' THEN
                RETURN v_answer;
            END IF;
            v_mailbox.id := p_id;
        ELSIF is_bound(v_mailbox.id) THEN
            RETURN 'taken';
        ELSIF NOT p_adopt THEN
            RETURN 'exists';
        ELSE
            v_answer := 'adopted';
        END IF;
    END IF;
    IF v_answer <> 'created' THEN
        UPDATE mailbox
           SET managed_by = 'kubernetes', active = false, password_hash = p_password_hash,
               password_epoch = password_epoch + 1
         WHERE id = v_mailbox.id AND removed_at IS NULL;
    END IF;
    UPDATE resource SET thing = v_mailbox.id, rotate_handled = coalesce(p_asked, rotate_handled) WHERE uid = p_uid;
    RETURN v_answer;
END $$;

-- Lets an object's mailbox be signed in to with the password of this hash, which is with its owner.
CREATE FUNCTION activate_mailbox(p_epoch bigint, p_uid uuid, p_password_hash text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    UPDATE mailbox b SET active = true
      FROM resource r
     WHERE r.uid = p_uid AND b.id = r.thing AND b.removed_at IS NULL AND b.password_hash = p_password_hash;
END $$;

-- Lets nobody sign in to an object's mailbox any more, and ends its JWTs: the object is not accepted.
CREATE FUNCTION withhold_mailbox(p_epoch bigint, p_uid uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_epoch(p_epoch);
    UPDATE mailbox b SET active = false, password_epoch = b.password_epoch + 1
      FROM resource r
     WHERE r.uid = p_uid AND b.id = r.thing AND b.active AND b.removed_at IS NULL;
END $$;

-- Lets go of an object's mailbox: removed with its mail, or its tenant's over HTTP.
CREATE FUNCTION release_mailbox(
    p_epoch bigint, p_uid uuid, p_purge uuid, p_retained boolean, p_now timestamptz, p_hold_days integer
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_id uuid;
BEGIN
    PERFORM hold_epoch(p_epoch);
    SELECT b.id INTO v_id FROM resource r JOIN mailbox b ON b.id = r.thing
     WHERE r.uid = p_uid AND b.removed_at IS NULL;
    IF FOUND AND p_retained THEN
        UPDATE mailbox SET managed_by = 'api', active = true WHERE id = v_id;
    ELSIF FOUND THEN
        PERFORM remove_mailbox(v_id, p_purge, 'kubernetes', p_now, p_hold_days);
    END IF;
    DELETE FROM resource WHERE uid = p_uid;
END $$;

-- System domains ----------------------------------------------------------------

-- Which one is the default, and in which place each is, objects show and keep.
CREATE TRIGGER system_domain_mirrored AFTER UPDATE ON domain
    FOR EACH ROW WHEN (NEW.tenant IS NULL AND NEW.managed_by = 'kubernetes'
        AND (OLD.is_default, OLD.sort_order) IS DISTINCT FROM (NEW.is_default, NEW.sort_order))
    EXECUTE FUNCTION note_change();

-- Whether an object is another one of the same cluster, kind, namespace and name: it vanished, since two
-- can't be there at once.
CREATE FUNCTION is_predecessor(p_former resource, p_uid uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM resource r
                    WHERE r.uid = p_uid AND r.uid <> p_former.uid AND r.cluster = p_former.cluster
                      AND r.kind = p_former.kind AND r.name = p_former.name
                      AND r.namespace IS NOT DISTINCT FROM p_former.namespace)
$$;

-- Makes an object's system domain serve as the object says, and the default one if p_default; one
-- that serves and has no object is taken over, and so is that of an object which vanished and was made
-- again. Answers created, adopted, kept, taken (by another object) or custom_domain (one is in the way).
CREATE FUNCTION declare_system_domain(
    p_epoch bigint, p_uid uuid, p_id uuid, p_name text, p_shared_inboxes boolean, p_sort_order integer,
    p_default boolean, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_id     uuid;
    v_met    text;
    v_answer text := 'kept';
BEGIN
    PERFORM hold_epoch(p_epoch);
    SELECT a.o_id, a.o_met INTO v_id, v_met
      FROM add_system_domain(p_id, p_name, p_shared_inboxes, p_sort_order, p_now) a;
    IF v_met IS NOT NULL THEN
        RETURN 'custom_domain';
    ELSIF v_id IS NOT NULL THEN
        v_answer := 'created';
    ELSE
        SELECT d.id INTO STRICT v_id FROM domain d
         WHERE d.name = p_name AND d.tenant IS NULL AND d.serves FOR NO KEY UPDATE;
    END IF;
    IF EXISTS (SELECT FROM resource r
                WHERE r.thing = v_id AND r.uid <> p_uid AND NOT is_predecessor(r, p_uid)) THEN
        RETURN 'taken';
    ELSIF v_answer = 'kept' AND NOT is_bound(v_id) THEN
        v_answer := 'adopted';
    END IF;
    UPDATE domain
       SET managed_by = 'kubernetes', shared_inboxes = p_shared_inboxes, sort_order = p_sort_order
     WHERE id = v_id
       AND (managed_by, shared_inboxes, sort_order) IS DISTINCT FROM ('kubernetes', p_shared_inboxes, p_sort_order);
    IF p_default THEN
        PERFORM set_default_system_domain(p_name);
    END IF;
    DELETE FROM resource WHERE thing = v_id AND uid <> p_uid;
    PERFORM bind_resource(p_uid, v_id);
    RETURN v_answer;
END $$;

-- Takes an object's system domain out of service, and lets go of it; unless it is the only one, the
-- default one, or mailboxes use it. Answers as remove_system_domain does; unknown: there is none any
-- more.
CREATE FUNCTION release_system_domain(
    p_epoch bigint, p_uid uuid, p_now timestamptz, OUT o_verdict text, OUT o_mailboxes bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_domain domain;
BEGIN
    PERFORM hold_epoch(p_epoch);
    SELECT d.* INTO v_domain FROM resource r JOIN domain d ON d.id = r.thing WHERE r.uid = p_uid AND d.serves;
    o_verdict := 'unknown';
    IF FOUND THEN
        SELECT s.o_verdict, s.o_mailboxes INTO o_verdict, o_mailboxes
          FROM remove_system_domain(v_domain.name, false, p_now, 0) s;
    END IF;
    IF o_verdict IN ('removed', 'unknown') THEN
        UPDATE domain d SET managed_by = 'api' FROM resource r WHERE r.uid = p_uid AND d.id = r.thing;
        DELETE FROM resource WHERE uid = p_uid;
    END IF;
END $$;
