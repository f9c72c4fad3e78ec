-- A removed free mailbox that may be created again with its password while its address is held: its own JWT deleted it, or it
-- was idle.
ALTER TABLE mailbox ADD COLUMN restorable boolean NOT NULL DEFAULT false;
