-- The failed messages of a channel, newest first.
CREATE INDEX message_failed_of ON message (channel, seq) WHERE status = 5;

-- A contact by another spelling, on any channel.
CREATE INDEX alias_contact ON alias (contact);

-- Messages, events and deliveries of a channel, and deliveries of a webhook, in their order. An index of SQLite always ends with the seq.
DROP INDEX message_channel;
CREATE INDEX message_channel ON message (channel, seq);
DROP INDEX event_channel;
CREATE INDEX event_channel ON event (channel, seq);
DROP INDEX delivery_channel;
CREATE INDEX delivery_channel ON delivery (channel, seq);
DROP INDEX delivery_endpoint;
CREATE INDEX delivery_endpoint ON delivery (endpoint, seq);
