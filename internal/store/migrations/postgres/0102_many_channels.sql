-- What is due is found over all channels at once.
CREATE INDEX otp_code_due ON otp_code (expires_at, channel) WHERE status = 0;
CREATE INDEX otp_link_due ON otp_link (expires_at, channel) WHERE status = 0;
-- Which channels got another status is asked by the seq of its event.
CREATE INDEX channel_state_seq ON channel_state (seq);
