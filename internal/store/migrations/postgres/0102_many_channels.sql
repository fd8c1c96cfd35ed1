-- What is due is found over all channels at once.
CREATE INDEX otp_code_due ON otp_code (expires_at, channel) WHERE status = 0;
CREATE INDEX otp_link_due ON otp_link (expires_at, channel) WHERE status = 0;
-- Which channels got another status is asked by the seq of its event.
CREATE INDEX channel_state_seq ON channel_state (seq);

-- What nodes changed, in the order of commits: seq is the revision. Other nodes read what is new.
CREATE TABLE change (
  seq  BIGINT PRIMARY KEY,
  kind TEXT COLLATE "C" NOT NULL, -- channel, token, webhook or key
  key  TEXT COLLATE "C" NOT NULL  -- its code or id; of a webhook '' is any
);
