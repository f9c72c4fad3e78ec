-- How many free mailboxes there are (table `mailbox_count`): kept, since counting them would cost each new one more. Only
-- these triggers change it, with the rights of the schema's owner. Its row is locked last (domains/name.sql).

CREATE OR REPLACE FUNCTION count_free_mailboxes() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_change bigint := 0;
BEGIN
    IF TG_OP <> 'DELETE' THEN
        v_change := (SELECT count(*) FROM new_mailbox b WHERE b.tenant IS NULL AND b.removed_at IS NULL);
    END IF;
    IF TG_OP <> 'INSERT' THEN
        v_change := v_change - (SELECT count(*) FROM old_mailbox b WHERE b.tenant IS NULL AND b.removed_at IS NULL);
    END IF;
    IF v_change <> 0 THEN
        UPDATE mailbox_count SET free = free + v_change;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER mailbox_created_count AFTER INSERT ON mailbox REFERENCING NEW TABLE AS new_mailbox
    FOR EACH STATEMENT EXECUTE FUNCTION count_free_mailboxes();
CREATE OR REPLACE TRIGGER mailbox_changed_count AFTER UPDATE ON mailbox
    REFERENCING OLD TABLE AS old_mailbox NEW TABLE AS new_mailbox
    FOR EACH STATEMENT EXECUTE FUNCTION count_free_mailboxes();
CREATE OR REPLACE TRIGGER mailbox_deleted_count AFTER DELETE ON mailbox REFERENCING OLD TABLE AS old_mailbox
    FOR EACH STATEMENT EXECUTE FUNCTION count_free_mailboxes();
