-- What admins of a group change, and who asks to be let in.
ALTER TABLE groups ADD COLUMN description TEXT NOT NULL DEFAULT '';
ALTER TABLE groups ADD COLUMN locked BIGINT NOT NULL DEFAULT 0; -- 1: only admins edit it
ALTER TABLE groups ADD COLUMN announce BIGINT NOT NULL DEFAULT 0; -- 1: only admins write
ALTER TABLE groups ADD COLUMN approval BIGINT NOT NULL DEFAULT 0; -- 1: an admin lets people in
ALTER TABLE groups ADD COLUMN closed BIGINT NOT NULL DEFAULT 0; -- 1: only admins add people
ALTER TABLE members ADD COLUMN admin BIGINT NOT NULL DEFAULT 0;
CREATE TABLE join_requests (
  grp    BIGINT NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
  number TEXT COLLATE "C" NOT NULL,
  at     BIGINT NOT NULL, -- milliseconds
  PRIMARY KEY (grp, number)
);
