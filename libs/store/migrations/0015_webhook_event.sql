-- When a webhook's event is sent again, and whose it is.
ALTER TABLE webhook_event
    -- The mailbox of its message; nil: the event is of the version before.
    ADD COLUMN mailbox uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    -- No further attempt before, business time; -infinity: it was never tried, or only by the version before.
    ADD COLUMN due_at  timestamptz NOT NULL DEFAULT '-infinity';
-- What can be sent now: events that were never tried in their order, and then those that were, by their time.
CREATE INDEX webhook_event_due ON webhook_event (webhook, due_at, seq);
-- The mailboxes with events that were never tried, and the first of each.
CREATE INDEX webhook_event_untried ON webhook_event (webhook, mailbox, seq) WHERE due_at = '-infinity';
