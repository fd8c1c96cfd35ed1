-- Whether the channel blocks the phone.
ALTER TABLE phones ADD COLUMN blocked INTEGER NOT NULL DEFAULT 0;
