-- Events up to this seq were removed by retention, or are about to be.
ALTER TABLE log ADD COLUMN removed_to INTEGER NOT NULL DEFAULT 0;

-- Events that were removed before deliveries of them were planned: how many, and when that was last noticed.
ALTER TABLE webhook ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhook ADD COLUMN lost_at INTEGER NOT NULL DEFAULT 0;

-- Webhooks that were deleted and whose deliveries are still to be purged.
CREATE TABLE retired_webhook (id TEXT PRIMARY KEY) WITHOUT ROWID;
