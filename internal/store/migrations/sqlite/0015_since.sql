-- The last status of a channel that is not only passed through when the server starts and stops, and since when.
ALTER TABLE channel ADD COLUMN lasting_status TEXT NOT NULL DEFAULT '';
ALTER TABLE channel ADD COLUMN lasting_since INTEGER NOT NULL DEFAULT 0;

UPDATE channel SET
  lasting_status = coalesce((SELECT s.status FROM channel_state s
    WHERE s.channel = channel.code AND s.status NOT IN ('STARTING', 'STOPPED') ORDER BY s.seq DESC LIMIT 1), ''),
  lasting_since = coalesce((SELECT s.at FROM channel_state s
    WHERE s.channel = channel.code AND s.status NOT IN ('STARTING', 'STOPPED') ORDER BY s.seq DESC LIMIT 1), 0);
