-- What was done through the management API, by whom. Entries are never changed; they are deleted after a year.
CREATE TABLE audit (
  seq          INTEGER PRIMARY KEY AUTOINCREMENT,
  at           INTEGER NOT NULL,
  actor_kind   TEXT NOT NULL, -- token, session or local
  actor        TEXT NOT NULL, -- the id of the token or session
  actor_name   TEXT NOT NULL,
  role         TEXT NOT NULL,
  action       TEXT NOT NULL,
  object       TEXT NOT NULL,
  address      TEXT NOT NULL,
  request      TEXT NOT NULL,
  changed_from TEXT,          -- JSON; NULL: nothing
  changed_to   TEXT
);
CREATE INDEX audit_time ON audit (at);
CREATE INDEX audit_object ON audit (object, seq);
CREATE TRIGGER audit_is_final BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'entries of the audit log are never changed'); END;

-- The last use of a console session: when, from which address, with which browser.
ALTER TABLE ticket ADD COLUMN last_used_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ticket ADD COLUMN last_used_from TEXT NOT NULL DEFAULT '';
ALTER TABLE ticket ADD COLUMN user_agent TEXT NOT NULL DEFAULT '';
