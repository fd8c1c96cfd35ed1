-- Files that phones send are in the library of the server.
DROP TABLE files;

UPDATE schema_serves SET version = 7;
