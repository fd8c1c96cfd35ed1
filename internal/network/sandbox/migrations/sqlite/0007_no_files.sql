-- Files that phones send are in the library of the server.
DROP TABLE files;
