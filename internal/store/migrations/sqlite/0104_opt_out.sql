-- Since when the contact wants no messages; 0: it may get them.
ALTER TABLE chat ADD COLUMN opted_out_at INTEGER NOT NULL DEFAULT 0;
