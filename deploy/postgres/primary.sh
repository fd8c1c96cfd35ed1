#!/usr/bin/env bash
# Runs once, when the database directory of the primary is created: the role of the standby, and commits that wait for it.
set -euo pipefail

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set password="$(cat "$REPLICATION_PASSWORD_FILE")" \
    --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE replicator REPLICATION LOGIN PASSWORD :'password';
-- The slot keeps the log until the standby has it; max_slot_wal_keep_size bounds the disk that this takes.
SELECT pg_create_physical_replication_slot('standby');
ALTER SYSTEM SET max_slot_wal_keep_size = '16GB';
-- Read at the next start, so that what is created before does not wait for a standby that cannot exist yet.
ALTER SYSTEM SET synchronous_standby_names = 'standby';
ALTER SYSTEM SET synchronous_commit = 'on';
SQL

echo 'host replication replicator all scram-sha-256' >> "$PGDATA/pg_hba.conf"
