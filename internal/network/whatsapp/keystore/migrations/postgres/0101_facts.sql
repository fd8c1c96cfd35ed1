-- What the driver knows of the network, whatever the channel: see Store.Fact.
CREATE TABLE facts (
  name  TEXT COLLATE "C" PRIMARY KEY,
  value TEXT COLLATE "C" NOT NULL
);
