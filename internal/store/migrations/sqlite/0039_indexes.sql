-- The failed messages of a channel, newest first.
CREATE INDEX message_failed_of ON message (channel, seq) WHERE status = 5;

-- A contact by another spelling, on any channel.
CREATE INDEX alias_contact ON alias (contact);
