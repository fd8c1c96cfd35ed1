-- Files that phones sent. The channel fetches them after it stored their message; they are removed after two
-- days, as a real network removes what it passed on.
CREATE TABLE files (
  phone   INTEGER NOT NULL,
  message TEXT    NOT NULL,
  content BLOB    NOT NULL,
  at      INTEGER NOT NULL, -- milliseconds
  PRIMARY KEY (phone, message)
);
CREATE INDEX files_by_time ON files (at);

INSERT INTO files (phone, message, content, at)
  SELECT phone, json_extract(body, '$.target'), media, at FROM events WHERE media IS NOT NULL;

ALTER TABLE events DROP COLUMN media;
