-- For how long the server tried a webhook in vain, in milliseconds: not the time in which it did not run.
ALTER TABLE webhook ADD COLUMN failing_ms INTEGER NOT NULL DEFAULT 0;
