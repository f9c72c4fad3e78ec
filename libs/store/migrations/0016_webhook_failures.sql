-- What is known of the failures of a webhook. Both tables in the order in which statements lock them.
ALTER TABLE webhook
    -- A mailbox for each failed attempt since the last success; valid while failure_count is above 0.
    ADD COLUMN failing_mailboxes uuid[] NOT NULL DEFAULT '{}',
    -- Its secret was rotated: events that were tried are due again at once.
    ADD COLUMN rotated           boolean NOT NULL DEFAULT false;
ALTER TABLE webhook_delivery
    -- Why TLS failed.
    ADD COLUMN detail   text CHECK (detail IN ('expired', 'unknown_issuer', 'name_mismatch', 'handshake')),
    -- The last attempt of its event, which was not delivered.
    ADD COLUMN given_up boolean NOT NULL DEFAULT false;
