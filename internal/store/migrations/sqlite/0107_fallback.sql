-- Codes that several channels may carry, one after the other.
CREATE TABLE otp_fallback (
  id         TEXT PRIMARY KEY, -- of the code
  channel    INTEGER NOT NULL, -- the one that the code belongs to
  state      TEXT NOT NULL,    -- JSON: the channels, how many of them had their turn, and the message of the last one
  due_at     INTEGER,          -- when the next one may have to carry it; NULL: never
  expires_at INTEGER NOT NULL  -- as the code does
) WITHOUT ROWID;
CREATE INDEX otp_fallback_due ON otp_fallback (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX otp_fallback_time ON otp_fallback (channel, expires_at);

-- 1: a second copy of the message may have been sent; above that how many copies the network confirmed.
ALTER TABLE message ADD COLUMN copies INTEGER NOT NULL DEFAULT 0;
