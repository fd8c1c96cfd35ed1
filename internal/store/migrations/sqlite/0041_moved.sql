-- No row, or one: the PostgreSQL database that the data was moved to. Nothing may use the file then.
CREATE TABLE moved (
  destination TEXT NOT NULL
);
