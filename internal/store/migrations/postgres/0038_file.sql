-- Stored files. Messages and uploads of a channel with the same content name the same file.
CREATE TABLE file (
  key     TEXT COLLATE "C" PRIMARY KEY, -- the name that it is stored under
  channel BIGINT NOT NULL,
  sha256  BYTEA NOT NULL,
  size    BIGINT NOT NULL,
  at      BIGINT NOT NULL -- when it was stored
);
CREATE UNIQUE INDEX file_content ON file (channel, sha256);
-- Which messages name a file.
CREATE INDEX message_file ON message ((data::json #>> '{media,key}')) WHERE kind IN ('image', 'video', 'file', 'voice', 'sticker');
ALTER TABLE upload ADD COLUMN file TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE upload SET file = id;
CREATE INDEX upload_file ON upload (file);
UPDATE schema_serves SET version = 38;
