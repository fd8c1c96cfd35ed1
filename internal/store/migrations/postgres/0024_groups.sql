-- Who wrote an inbound message in a group ('': elsewhere), and when the text of a message was last changed (0: never).
ALTER TABLE message ADD COLUMN author TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE message ADD COLUMN edited_at BIGINT NOT NULL DEFAULT 0;

-- Older programs do not know the events and kinds of messages that come with it.
UPDATE schema_serves SET version = 24;
