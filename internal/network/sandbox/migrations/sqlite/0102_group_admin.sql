-- What admins of a group change, and who asks to be let in.
ALTER TABLE groups ADD COLUMN description TEXT NOT NULL DEFAULT '';
ALTER TABLE groups ADD COLUMN locked INTEGER NOT NULL DEFAULT 0; -- 1: only admins edit it
ALTER TABLE groups ADD COLUMN announce INTEGER NOT NULL DEFAULT 0; -- 1: only admins write
ALTER TABLE groups ADD COLUMN approval INTEGER NOT NULL DEFAULT 0; -- 1: an admin lets people in
ALTER TABLE groups ADD COLUMN closed INTEGER NOT NULL DEFAULT 0; -- 1: only admins add people
ALTER TABLE members ADD COLUMN admin INTEGER NOT NULL DEFAULT 0;
CREATE TABLE join_requests (
  grp    INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
  number TEXT NOT NULL,
  at     INTEGER NOT NULL, -- milliseconds
  PRIMARY KEY (grp, number)
) WITHOUT ROWID;
