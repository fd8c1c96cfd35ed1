-- The chats of a channel and of all, newest first. Plain columns: an index alone tells where a page begins. All chats of a channel
-- are in it, so that a purge finds them.
DROP INDEX chat_time;
CREATE INDEX chat_time ON chat (channel, last_at, id);
DROP INDEX chat_recent;
CREATE INDEX chat_recent ON chat (last_at, id) WHERE last_at > 0;

-- Old statuses of channels.
CREATE INDEX channel_state_time ON channel_state (at);
