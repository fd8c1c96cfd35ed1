-- What the driver knows of the network, whatever the channel: see Store.Fact.
CREATE TABLE facts (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
