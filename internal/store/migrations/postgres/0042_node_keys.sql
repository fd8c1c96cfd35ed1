-- Fingerprints of the lines of the node's secret.key, so that a rotation knows how far the nodes are.
ALTER TABLE node ADD COLUMN keys BYTEA[] NOT NULL DEFAULT '{}';
