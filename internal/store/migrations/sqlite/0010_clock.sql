-- One row: the newest time at which the clock of the machine was trusted. Nothing is erased by age while
-- the clock is far ahead of it.
CREATE TABLE clock (
  at INTEGER NOT NULL
);

INSERT INTO clock (at) SELECT coalesce(max(at), 0) FROM event WHERE at <= unixepoch() * 1000;
