-- Mailboxes: created and removed. For the order of locks see domains/name.sql.

-- Creates a mailbox; p_free_quota is that of one without a tenant, and p_free_limit how many of these there may be
-- (null: any number). Answers created, tenant_disabled, limit_reached (of the tenant), free_limit_reached,
-- no_such_domain (it does not serve, or not this tenant) or address_taken (in use or held).
CREATE OR REPLACE FUNCTION create_mailbox(
    p_id uuid, p_domain uuid, p_local_part text, p_tenant uuid, p_free_quota bigint, p_free_limit bigint,
    p_password_hash text, p_managed_by text, p_active boolean, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_quota   bigint := p_free_quota;
    v_refusal text;
BEGIN
    IF p_tenant IS NOT NULL THEN
        v_refusal := check_limit(p_tenant, 'mailbox', p_now);
        IF v_refusal IS NOT NULL THEN
            RETURN v_refusal;
        END IF;
        v_quota := (SELECT mailbox_bytes FROM tenant WHERE id = p_tenant);
    END IF;
    PERFORM FROM domain WHERE id = p_domain AND serves AND (tenant IS NULL OR tenant = p_tenant) FOR SHARE;
    IF NOT FOUND THEN
        RETURN 'no_such_domain';
    END IF;
    -- A removed mailbox gives up its address when its hold is over, or when its own tenant creates it again.
    UPDATE mailbox SET local_part = '@' || id
     WHERE domain = p_domain AND local_part = p_local_part AND removed_at IS NOT NULL
       AND (held_until <= p_now OR tenant = p_tenant);
    IF p_tenant IS NULL AND p_free_limit IS NOT NULL THEN
        -- In the order of locks: who is removing the mailbox that has the address counts it after that.
        PERFORM FROM mailbox b WHERE b.domain = p_domain AND b.local_part = p_local_part FOR SHARE;
        PERFORM FROM mailbox_count FOR NO KEY UPDATE;
        IF (SELECT c.free FROM mailbox_count c) >= p_free_limit THEN
            RETURN 'free_limit_reached';
        END IF;
    END IF;
    INSERT INTO mailbox (id, domain, local_part, tenant, quota, password_hash, managed_by, active, created_at, seen_at)
    VALUES (p_id, p_domain, p_local_part, p_tenant, v_quota, p_password_hash, p_managed_by, p_active, p_now, p_now)
    ON CONFLICT (domain, local_part) DO NOTHING;
    RETURN CASE WHEN FOUND THEN 'created' ELSE 'address_taken' END;
END $$;

-- Creates a free mailbox again, whose address is held for the former one p_former. Its password has been compared with that
-- of the former one, which it keeps; it has another id, and so none of the former one's mail and JWTs. Answers created,
-- free_limit_reached, no_such_domain (the domain does not serve), or address_taken (it is not held for this mailbox any more).
CREATE OR REPLACE FUNCTION recreate_mailbox(
    p_id uuid, p_former uuid, p_free_quota bigint, p_free_limit bigint, p_now timestamptz
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_former record;
BEGIN
    PERFORM FROM domain d JOIN mailbox b ON b.domain = d.id
      WHERE b.id = p_former AND d.serves AND d.tenant IS NULL FOR SHARE OF d;
    IF NOT FOUND THEN
        RETURN 'no_such_domain';
    END IF;
    SELECT b.domain, b.local_part, b.password_hash INTO v_former FROM mailbox b
     WHERE b.id = p_former AND b.restorable AND b.tenant IS NULL AND b.held_until > p_now FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 'address_taken';
    END IF;
    PERFORM FROM mailbox_count FOR NO KEY UPDATE;
    IF (SELECT c.free FROM mailbox_count c) >= p_free_limit THEN
        RETURN 'free_limit_reached';
    END IF;
    UPDATE mailbox
       SET local_part = '@' || id, held_until = p_now, restorable = false, password_hash = '!'
     WHERE id = p_former;
    INSERT INTO mailbox (id, domain, local_part, quota, password_hash, created_at, seen_at)
    VALUES (p_id, v_former.domain, v_former.local_part, p_free_quota, v_former.password_hash, p_now, p_now);
    RETURN 'created';
END $$;

-- Removes a mailbox that p_managed_by manages: hidden at once, its mail deleted by the worker. On a
-- system domain its address is held. False where it is removed already, or managed otherwise. Of a free one only its own JWT
-- does this.
CREATE OR REPLACE FUNCTION remove_mailbox(p_id uuid, p_managed_by text, p_now timestamptz, p_hold_days integer)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mailbox b
       SET removed_at = p_now, held_until = p_now + make_interval(days => p_hold_days),
           password_epoch = b.password_epoch + 1, restorable = b.tenant IS NULL,
           local_part = CASE WHEN d.tenant IS NULL THEN b.local_part ELSE '@' || b.id END
      FROM domain d
     WHERE b.id = p_id AND b.removed_at IS NULL AND b.managed_by = p_managed_by AND d.id = b.domain;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM purge_removed(p_id, p_now);
    PERFORM wait_for_mail();
    RETURN true;
END $$;

-- Removes mailboxes and holds their addresses, for their tenants or, if p_forget_tenants, for no tenant:
-- hidden at once, their mail deleted by the worker. The caller calls wait_for_mail.
CREATE OR REPLACE FUNCTION remove_held_mailboxes(
    p_ids uuid[], p_forget_tenants boolean, p_now timestamptz, p_hold_days integer
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM mailbox b WHERE b.id = ANY (p_ids) ORDER BY b.id FOR NO KEY UPDATE;
    WITH removed AS (
        UPDATE mailbox b
           SET removed_at = p_now, held_until = p_now + make_interval(days => p_hold_days),
               password_epoch = b.password_epoch + 1,
               tenant = CASE WHEN NOT p_forget_tenants THEN b.tenant END
         WHERE b.id = ANY (p_ids) AND b.removed_at IS NULL
        RETURNING b.id
    )
    INSERT INTO purge (inbox, owner, address, up_to_seq, owner_removed, created_at)
    SELECT r.id, r.id, '', 9223372036854775807, true, p_now FROM removed r
    ON CONFLICT DO NOTHING;
END $$;

-- Removes up to p_limit free mailboxes that were last seen before p_idle_since, those longest idle first,
-- and holds their addresses. Returns how many.
CREATE OR REPLACE FUNCTION remove_idle_mailboxes(
    p_idle_since timestamptz, p_limit integer, p_now timestamptz, p_hold_days integer
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_ids CONSTANT uuid[] := ARRAY(
        SELECT id FROM mailbox WHERE tenant IS NULL AND removed_at IS NULL AND seen_at < p_idle_since
         ORDER BY seen_at LIMIT p_limit FOR UPDATE SKIP LOCKED);
BEGIN
    IF cardinality(v_ids) > 0 THEN
        PERFORM remove_held_mailboxes(v_ids, false, p_now, p_hold_days);
        UPDATE mailbox SET restorable = true WHERE id = ANY (v_ids);
        PERFORM wait_for_mail();
    END IF;
    RETURN cardinality(v_ids);
END $$;

-- Sets another password of a tenant's mailbox with the token p_token; a mailbox that was deactivated is active again. Its
-- origin is that of the token, since who has the password is who set it. Answers who manages the mailbox (then it was
-- changed if that is `api`), or null if there is none.
CREATE OR REPLACE FUNCTION reset_mailbox_password(p_tenant uuid, p_id uuid, p_token uuid, p_password_hash text)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_origin     uuid := token_origin(p_token);
    v_managed_by text;
BEGIN
    SELECT b.managed_by INTO v_managed_by FROM mailbox b
     WHERE b.id = p_id AND b.tenant = p_tenant AND b.removed_at IS NULL FOR NO KEY UPDATE;
    IF v_managed_by = 'api' THEN
        UPDATE mailbox
           SET password_hash = p_password_hash, password_epoch = password_epoch + 1, active = true, origin = v_origin
         WHERE id = p_id;
    END IF;
    RETURN v_managed_by;
END $$;
