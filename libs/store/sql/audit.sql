-- The audit trail: who made, changed or deleted what. Triggers write it in the transaction of the change. Its times are
-- the server's, since they are for people.

-- Creates the partition of a month; does nothing where it exists.
CREATE OR REPLACE FUNCTION ensure_audit_partition(p_at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_month timestamptz := date_trunc('month', p_at, 'UTC');
    v_name  text := 'audit_' || extract(epoch FROM v_month)::bigint;
BEGIN
    IF to_regclass(v_name) IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.audit_partition'));
    IF to_regclass(v_name) IS NULL THEN
        PERFORM create_partition('audit', v_name, NULL, quote_literal(time_id(v_month)),
                                 quote_literal(time_id(date_trunc('month', v_month + interval '31 days', 'UTC'))));
    END IF;
END $$;

-- Records a change. The actor is what the process set for this statement (`tempmail.actor`), else the process itself.
CREATE OR REPLACE FUNCTION record_audit(p_action text, p_kind text, p_subject text, p_tenant uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_now   timestamptz := clock_timestamp(); /* audit */
    v_id    uuid := new_id(v_now);
    v_actor text := coalesce(nullif(current_setting('tempmail.actor', true), ''), current_setting('application_name'));
BEGIN
    PERFORM ensure_audit_partition(v_now);
    INSERT INTO audit (id, actor, login, action, kind, subject, tenant)
    VALUES (v_id, v_actor, session_user, p_action, p_kind, p_subject, p_tenant);
    INSERT INTO audit_unlogged (id) VALUES (v_id);
END $$;

-- Records the change of a row. The argument is the kind of its subject.
CREATE OR REPLACE FUNCTION audit_row() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_old jsonb := to_jsonb(OLD);
    v_row jsonb := coalesce(to_jsonb(NEW), v_old);
    v_action text := CASE
        WHEN TG_OP = 'INSERT' THEN 'created'
        WHEN TG_OP = 'DELETE' OR v_old -> 'removed_at' = 'null' AND v_row -> 'removed_at' <> 'null' THEN 'deleted'
        WHEN v_old -> 'revoked_at' = 'null' AND v_row -> 'revoked_at' <> 'null' THEN 'revoked'
        WHEN v_row -> 'suspended' <> v_old -> 'suspended' THEN
            CASE WHEN (v_row -> 'suspended')::boolean THEN 'suspended' ELSE 'resumed' END
        WHEN v_row -> 'verify_status' <> v_old -> 'verify_status' THEN v_row ->> 'verify_status'
        WHEN (v_row -> 'hash', v_row -> 'secret', v_row -> 'password_epoch')
             IS DISTINCT FROM (v_old -> 'hash', v_old -> 'secret', v_old -> 'password_epoch') THEN 'rotated'
        ELSE 'changed' END;
BEGIN
    PERFORM record_audit(v_action, TG_ARGV[0], v_row ->> 'id',
                         CASE TG_ARGV[0] WHEN 'tenant' THEN v_row ->> 'id' ELSE v_row ->> 'tenant' END::uuid);
    RETURN NULL;
END $$;

-- Records another retention of mail without a tenant.
CREATE OR REPLACE FUNCTION audit_free_class() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM record_audit('changed', 'setting', 'retention.free_hours', NULL);
    RETURN NULL;
END $$;

-- What the installation itself does all the time is no change: the columns of use, checks, deliveries and leases.
CREATE OR REPLACE TRIGGER tenant_created_audit AFTER INSERT ON tenant
    FOR EACH ROW EXECUTE FUNCTION audit_row('tenant');
CREATE OR REPLACE TRIGGER tenant_changed_audit
    AFTER UPDATE OF suspended, removed_at, managed_by, retention_hours, mailbox_limit, domain_limit, webhook_limit,
        token_limit, mailbox_bytes ON tenant
    FOR EACH ROW WHEN (
        (OLD.suspended, OLD.removed_at, OLD.managed_by, OLD.retention_hours, OLD.mailbox_limit, OLD.domain_limit,
         OLD.webhook_limit, OLD.token_limit, OLD.mailbox_bytes) IS DISTINCT FROM
        (NEW.suspended, NEW.removed_at, NEW.managed_by, NEW.retention_hours, NEW.mailbox_limit, NEW.domain_limit,
         NEW.webhook_limit, NEW.token_limit, NEW.mailbox_bytes))
    EXECUTE FUNCTION audit_row('tenant');
CREATE OR REPLACE TRIGGER token_created_audit AFTER INSERT ON api_token
    FOR EACH ROW EXECUTE FUNCTION audit_row('token');
CREATE OR REPLACE TRIGGER token_changed_audit AFTER UPDATE OF hash, managed_by, expires_at, revoked_at ON api_token
    FOR EACH ROW WHEN ((OLD.hash, OLD.managed_by, OLD.expires_at, OLD.revoked_at)
                       IS DISTINCT FROM (NEW.hash, NEW.managed_by, NEW.expires_at, NEW.revoked_at))
    EXECUTE FUNCTION audit_row('token');
-- Those that expire are deleted without an entry; functions record what else ends them.
CREATE OR REPLACE TRIGGER minted_token_created_audit AFTER INSERT ON minted_token
    FOR EACH ROW EXECUTE FUNCTION audit_row('token');
CREATE OR REPLACE TRIGGER domain_created_audit AFTER INSERT ON domain
    FOR EACH ROW EXECUTE FUNCTION audit_row('domain');
CREATE OR REPLACE TRIGGER domain_changed_audit
    AFTER UPDATE OF shared_inboxes, is_default, sort_order, managed_by, removed_at, active, verify_status ON domain
    FOR EACH ROW WHEN (
        (OLD.shared_inboxes, OLD.is_default, OLD.sort_order, OLD.managed_by, OLD.removed_at, OLD.active,
         OLD.verify_status) IS DISTINCT FROM
        (NEW.shared_inboxes, NEW.is_default, NEW.sort_order, NEW.managed_by, NEW.removed_at, NEW.active,
         NEW.verify_status))
    EXECUTE FUNCTION audit_row('domain');
-- Anybody may make a free mailbox, without a credential: nothing is known of who did.
CREATE OR REPLACE TRIGGER mailbox_created_audit AFTER INSERT ON mailbox
    FOR EACH ROW WHEN (NEW.tenant IS NOT NULL) EXECUTE FUNCTION audit_row('mailbox');
CREATE OR REPLACE TRIGGER mailbox_changed_audit
    AFTER UPDATE OF tenant, quota, password_epoch, active, managed_by, removed_at ON mailbox
    FOR EACH ROW WHEN (NEW.tenant IS NOT NULL AND
        (OLD.tenant, OLD.quota, OLD.password_epoch, OLD.active, OLD.managed_by, OLD.removed_at) IS DISTINCT FROM
        (NEW.tenant, NEW.quota, NEW.password_epoch, NEW.active, NEW.managed_by, NEW.removed_at))
    EXECUTE FUNCTION audit_row('mailbox');
CREATE OR REPLACE TRIGGER webhook_created_audit AFTER INSERT OR DELETE ON webhook
    FOR EACH ROW EXECUTE FUNCTION audit_row('webhook');
-- A secret that is sealed again is the same secret; only `worker` may say that of it, by `reseals`.
CREATE OR REPLACE TRIGGER webhook_changed_audit AFTER UPDATE OF url, events, secret, status, managed_by ON webhook
    FOR EACH ROW WHEN ((OLD.url, OLD.events, OLD.status, OLD.managed_by)
                       IS DISTINCT FROM (NEW.url, NEW.events, NEW.status, NEW.managed_by)
                       OR OLD.secret <> NEW.secret AND OLD.reseals = NEW.reseals)
    EXECUTE FUNCTION audit_row('webhook');
CREATE OR REPLACE TRIGGER free_class_audit AFTER INSERT ON free_class
    FOR EACH ROW EXECUTE FUNCTION audit_free_class();

-- Drops the partitions of months that ended more than 400 days ago; returns how many. Waits 100 ms for a lock, then
-- fails: the caller retries later.
CREATE OR REPLACE FUNCTION drop_audit_partitions() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '100ms' AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.audit_partition'));
    RETURN drop_tables(ARRAY(
        SELECT c.relname FROM pg_class c
         WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname ~ '^audit_[0-9]+$'
           AND to_timestamp(substring(c.relname FROM '[0-9]+$')::bigint) + interval '31 days'
               <= clock_timestamp() - interval '400 days' /* audit */));
END $$;
