-- Who wrote an inbound message in a group ('': elsewhere), and when the text of a message was last changed (0: never).
ALTER TABLE message ADD COLUMN author TEXT NOT NULL DEFAULT '';
ALTER TABLE message ADD COLUMN edited_at INTEGER NOT NULL DEFAULT 0;
