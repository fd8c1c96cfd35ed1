-- What an admin token may do: viewer, support, operator or owner. Tokens from before roles may do everything. Other kinds have none.
ALTER TABLE token ADD COLUMN role TEXT NOT NULL DEFAULT 'owner';
UPDATE token SET role = '' WHERE kind <> 'admin';

-- Console sessions and the links that begin them: what they may do, whom they are for, and the admin token that made the link.
ALTER TABLE ticket ADD COLUMN role TEXT NOT NULL DEFAULT 'owner';
ALTER TABLE ticket ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE ticket ADD COLUMN token TEXT NOT NULL DEFAULT '';
-- When a session ends however much it is used; 0: it began before this column, and ends as all others do.
ALTER TABLE ticket ADD COLUMN ends_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX ticket_token ON ticket (token) WHERE token <> '';
