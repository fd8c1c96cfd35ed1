-- Codes that several channels may carry, one after the other.
CREATE TABLE otp_fallback (
  id         TEXT COLLATE "C" PRIMARY KEY, -- of the code
  channel    BIGINT NOT NULL, -- the one that the code belongs to
  state      TEXT COLLATE "C" NOT NULL,    -- JSON: the channels, how many of them had their turn, and the message of the last one
  due_at     BIGINT,          -- when the next one may have to carry it; NULL: never
  expires_at BIGINT NOT NULL  -- as the code does
);
CREATE INDEX otp_fallback_due ON otp_fallback (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX otp_fallback_time ON otp_fallback (channel, expires_at);

-- 1: a second copy of the message may have been sent; above that how many copies the network confirmed.
ALTER TABLE message ADD COLUMN copies BIGINT NOT NULL DEFAULT 0;
