-- The labels of a channel: a JSON array, sorted.
ALTER TABLE channel ADD COLUMN labels TEXT NOT NULL DEFAULT '[]';
