-- How many messages of the notices of an alert failed for good: the next one has another idempotency key.
ALTER TABLE alert ADD COLUMN failed BIGINT NOT NULL DEFAULT 0;
