-- The session in which the link of a session was made; NULL: it was made outside the console.
ALTER TABLE ticket ADD COLUMN parent BYTEA;
CREATE INDEX ticket_parent ON ticket (parent) WHERE parent IS NOT NULL;
