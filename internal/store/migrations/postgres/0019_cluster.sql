-- Several nodes on one database. Only PostgreSQL has these tables.

CREATE TABLE cluster (
  one       BIGINT PRIMARY KEY CHECK (one = 1), -- there is one row
  shards    BIGINT NOT NULL,
  key_print BYTEA NOT NULL -- a fingerprint of secret.key, which all nodes share
);

-- A row per running process. Its id is never used again. The node that takes over its shards deletes it.
CREATE TABLE node (
  id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  url        TEXT COLLATE "C" NOT NULL, -- where other nodes reach it; '': nowhere
  version    TEXT COLLATE "C" NOT NULL,
  draining   BOOLEAN NOT NULL DEFAULT false,
  started_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  expires_at TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 20);

CREATE TABLE shard (
  id   BIGINT PRIMARY KEY,
  node BIGINT REFERENCES node ON DELETE SET NULL
) WITH (fillfactor = 20);
INSERT INTO shard (id) SELECT generate_series(0, 127);

-- fence fails unless the node is a member. It is called at the begin of every transaction. Deleting the node waits for the
-- lock, so after that no transaction of the node can commit.
CREATE FUNCTION fence(n BIGINT) RETURNS void AS $$ BEGIN
  PERFORM 1 FROM node WHERE id = n FOR KEY SHARE;
  IF NOT FOUND THEN RAISE EXCEPTION 'node % is no longer a member', n USING ERRCODE = 'PF001'; END IF;
END $$ LANGUAGE plpgsql;

-- The seq of the last event that is committed. Its row is locked while events are added.
ALTER TABLE log ADD last_event BIGINT NOT NULL DEFAULT 0;
ALTER TABLE log SET (fillfactor = 10);

-- The oldest version of the tables that a program may know. A migration that older programs can work with leaves it alone.
CREATE TABLE schema_serves (version BIGINT NOT NULL);
INSERT INTO schema_serves (version) VALUES (19);
