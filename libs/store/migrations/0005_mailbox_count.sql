-- How many free mailboxes there are, since an installation has a limit of them (`limits.free_mailboxes`). Triggers keep it
-- (sql/tenants/count.sql); those that are made between this and the triggers are not counted.
CREATE TABLE mailbox_count (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    -- Mailboxes without a tenant that are not removed.
    free      bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO mailbox_count (free) SELECT count(*) FROM mailbox WHERE tenant IS NULL AND removed_at IS NULL;
