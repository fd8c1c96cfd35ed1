-- Files that callers sent for later messages.
CREATE TABLE upload (
  id       TEXT PRIMARY KEY, -- the name that the file is stored under
  channel  INTEGER NOT NULL,
  mime     TEXT NOT NULL,
  filename TEXT NOT NULL,
  size     INTEGER NOT NULL,
  at       INTEGER NOT NULL, -- when it was uploaded or last used
  used     INTEGER NOT NULL  -- 1: a message was made of it
) WITHOUT ROWID;
CREATE INDEX upload_channel ON upload (channel, used, size, at);
CREATE INDEX upload_time ON upload (at);
