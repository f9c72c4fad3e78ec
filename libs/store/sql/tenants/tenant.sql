-- Tenants: removed. For the order of locks see domains/name.sql.

-- Removes a tenant; false where it is removed already, or is `platform`.
--
-- Its name is free at once. It stays suspended and with limits of 0, so that a transaction that waited for
-- its row to create something is refused. No mailbox refers to it any more, removed ones included: an
-- address on a system domain stays held, and no tenant can have it before the hold is over. The row itself
-- is deleted when its domains are.
CREATE OR REPLACE FUNCTION remove_tenant(p_id uuid, p_now timestamptz, p_hold_days integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_domain  uuid;
    v_is_sink CONSTANT boolean := (SELECT t.is_sink FROM tenant t WHERE t.id = p_id);
BEGIN
    UPDATE tenant
       SET name = '@' || id, removed_at = p_now, suspended = true,
           mailbox_limit = 0, domain_limit = 0, webhook_limit = 0, token_limit = 0
     WHERE id = p_id AND removed_at IS NULL AND id <> '00000000-0000-7000-8000-000000000001';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    FOR v_domain IN SELECT d.id FROM domain d WHERE d.tenant = p_id AND d.removed_at IS NULL ORDER BY d.id LOOP
        UPDATE domain SET removed_at = p_now, serves = false, next_check_at = NULL, claimed_until = NULL
         WHERE id = v_domain;
        PERFORM remove_mailboxes_of_domain(v_domain, p_now);
        PERFORM purge_removed(v_domain, p_now);
    END LOOP;
    IF v_is_sink THEN
        PERFORM purge_removed(p_id, p_now);
    END IF;
    PERFORM remove_held_mailboxes(
        ARRAY(SELECT b.id FROM mailbox b WHERE b.tenant = p_id AND b.removed_at IS NULL),
        true, p_now, p_hold_days);
    UPDATE mailbox SET tenant = NULL WHERE tenant = p_id AND removed_at IS NOT NULL;

    DELETE FROM api_token WHERE tenant = p_id;
    DELETE FROM webhook WHERE tenant = p_id;
    -- All of its mail that is in flight is stored, and hidden, or will find it suspended.
    PERFORM wait_for_mail();
    RETURN true;
END $$;
