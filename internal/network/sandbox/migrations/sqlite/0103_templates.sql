-- The templates of a channel, as JSON.
ALTER TABLE worlds ADD COLUMN templates TEXT NOT NULL DEFAULT '[]';
