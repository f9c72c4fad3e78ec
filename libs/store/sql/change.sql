-- The feed of changes (table `change`): rights that end or move, and what Kubernetes objects show. Only these triggers
-- insert into it, with the rights of the schema's owner: no role can add to it or keep a change out of it.

-- Records the changed row as the subject.
CREATE OR REPLACE FUNCTION record_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO change (subject) VALUES (CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END);
    RETURN NULL;
END $$;

-- Records the key of the address of a new mailbox as the subject: waits on its shared inbox end.
CREATE OR REPLACE FUNCTION record_new_mailbox() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO change (subject)
    SELECT encode(substring(sha256(convert_to(NEW.local_part || '@' || d.name, 'UTF8')) FROM 1 FOR 16), 'hex')::uuid
      FROM domain d WHERE d.id = NEW.domain;
    RETURN NULL;
END $$;

-- Rights.
CREATE OR REPLACE TRIGGER tenant_changed AFTER UPDATE OF suspended, removed_at ON tenant
    FOR EACH ROW WHEN ((OLD.suspended, OLD.removed_at) IS DISTINCT FROM (NEW.suspended, NEW.removed_at))
    EXECUTE FUNCTION record_change();
CREATE OR REPLACE TRIGGER tenant_deleted AFTER DELETE ON tenant FOR EACH ROW EXECUTE FUNCTION record_change();
CREATE OR REPLACE TRIGGER token_changed AFTER UPDATE OF revoked_at, expires_at ON api_token
    FOR EACH ROW WHEN ((OLD.revoked_at, OLD.expires_at) IS DISTINCT FROM (NEW.revoked_at, NEW.expires_at))
    EXECUTE FUNCTION record_change();
CREATE OR REPLACE TRIGGER token_deleted AFTER DELETE ON api_token FOR EACH ROW EXECUTE FUNCTION record_change();
CREATE OR REPLACE TRIGGER minted_token_deleted AFTER DELETE ON minted_token
    FOR EACH ROW EXECUTE FUNCTION record_change();
CREATE OR REPLACE TRIGGER session_ended AFTER INSERT ON ended_session
    FOR EACH ROW EXECUTE FUNCTION record_change();
CREATE OR REPLACE TRIGGER mailbox_created AFTER INSERT ON mailbox FOR EACH ROW EXECUTE FUNCTION record_new_mailbox();
CREATE OR REPLACE TRIGGER mailbox_changed AFTER UPDATE OF removed_at, password_epoch, tenant ON mailbox
    FOR EACH ROW WHEN ((OLD.removed_at, OLD.password_epoch, OLD.tenant)
                       IS DISTINCT FROM (NEW.removed_at, NEW.password_epoch, NEW.tenant))
    EXECUTE FUNCTION record_change();
CREATE OR REPLACE TRIGGER mailbox_deleted AFTER DELETE ON mailbox FOR EACH ROW EXECUTE FUNCTION record_change();
CREATE OR REPLACE TRIGGER domain_changed AFTER UPDATE OF serves, shared_inboxes, removed_at ON domain
    FOR EACH ROW WHEN ((OLD.serves, OLD.shared_inboxes, OLD.removed_at)
                       IS DISTINCT FROM (NEW.serves, NEW.shared_inboxes, NEW.removed_at))
    EXECUTE FUNCTION record_change();
CREATE OR REPLACE TRIGGER domain_deleted AFTER DELETE ON domain FOR EACH ROW EXECUTE FUNCTION record_change();

-- What Kubernetes objects show, besides rights: verification, place among the system domains, and the
-- status of a webhook. Of tokens and mailboxes the changes of rights are all that they show.
CREATE OR REPLACE TRIGGER domain_mirrored AFTER UPDATE ON domain
    FOR EACH ROW WHEN (NEW.managed_by = 'kubernetes'
        AND (OLD.verify_status, OLD.failure_reason, OLD.deadline, OLD.verified_at,
             OLD.txt_result, OLD.txt_seen, OLD.mx_result, OLD.mx_seen)
            IS DISTINCT FROM (NEW.verify_status, NEW.failure_reason, NEW.deadline, NEW.verified_at,
             NEW.txt_result, NEW.txt_seen, NEW.mx_result, NEW.mx_seen))
    EXECUTE FUNCTION record_change();
CREATE OR REPLACE TRIGGER system_domain_mirrored AFTER UPDATE ON domain
    FOR EACH ROW WHEN (NEW.tenant IS NULL AND NEW.managed_by = 'kubernetes'
        AND (OLD.is_default, OLD.sort_order) IS DISTINCT FROM (NEW.is_default, NEW.sort_order))
    EXECUTE FUNCTION record_change();
CREATE OR REPLACE TRIGGER webhook_mirrored AFTER UPDATE OF status ON webhook
    FOR EACH ROW WHEN (NEW.managed_by = 'kubernetes' AND OLD.status IS DISTINCT FROM NEW.status)
    EXECUTE FUNCTION record_change();
CREATE OR REPLACE TRIGGER webhook_deleted AFTER DELETE ON webhook
    FOR EACH ROW WHEN (OLD.managed_by = 'kubernetes') EXECUTE FUNCTION record_change();
