-- What went to an address with a tag, which is read and deleted without the rest of its mailbox. On the parent alone, so
-- that no mail waits for it: the partitions that there are have none, and are read by `message_inbox` until they expire.
CREATE INDEX message_tagged ON ONLY message (inbox, address, seq) WHERE address LIKE '%+%';
