-- Files that callers sent for later messages.
CREATE TABLE upload (
  id       TEXT COLLATE "C" PRIMARY KEY, -- the name that the file is stored under
  channel  BIGINT NOT NULL,
  mime     TEXT COLLATE "C" NOT NULL,
  filename TEXT COLLATE "C" NOT NULL,
  size     BIGINT NOT NULL,
  at       BIGINT NOT NULL, -- when it was uploaded or last used
  used     BIGINT NOT NULL  -- 1: a message was made of it
);
CREATE INDEX upload_channel ON upload (channel, used, size, at);
CREATE INDEX upload_time ON upload (at);
