-- Stored files. Messages and uploads of a channel with the same content name the same file.
CREATE TABLE file (
  key     TEXT PRIMARY KEY, -- the name that it is stored under
  channel INTEGER NOT NULL,
  sha256  BLOB NOT NULL,
  size    INTEGER NOT NULL,
  at      INTEGER NOT NULL  -- when it was stored
) WITHOUT ROWID;
CREATE UNIQUE INDEX file_content ON file (channel, sha256);
-- Which messages name a file.
CREATE INDEX message_file ON message (json_extract(data, '$.media.key')) WHERE kind IN ('image', 'video', 'file', 'voice', 'sticker');
ALTER TABLE upload ADD COLUMN file TEXT NOT NULL DEFAULT '';
UPDATE upload SET file = id;
CREATE INDEX upload_file ON upload (file);
