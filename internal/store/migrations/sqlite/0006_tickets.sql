-- Secrets that open the console, keep it open, or link a phone. Only their hashes are kept.
CREATE TABLE ticket (
  hash       BLOB PRIMARY KEY, -- SHA-256 of the secret
  purpose    TEXT NOT NULL,
  channel    TEXT NOT NULL,    -- '': of none
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  used_at    INTEGER NOT NULL  -- 0: not used
) WITHOUT ROWID;

CREATE INDEX ticket_by_end ON ticket (expires_at);
