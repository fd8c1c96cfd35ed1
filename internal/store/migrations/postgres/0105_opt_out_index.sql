-- The contacts of a channel that want no messages, newest first.
CREATE INDEX chat_opted_out ON chat (channel, opted_out_at, id) WHERE opted_out_at > 0;
