-- When the text of a message was last changed, in milliseconds; 0: never.
ALTER TABLE messages ADD COLUMN edited_at INTEGER NOT NULL DEFAULT 0;
