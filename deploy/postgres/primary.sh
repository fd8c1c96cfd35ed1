#!/usr/bin/env bash
# Runs once, when the database directory of the primary is created: the role of the standby, commits that wait for it, and TLS.
set -euo pipefail

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set password="$(cat "$REPLICATION_PASSWORD_FILE")" \
    --set certificate="$CERTIFICATE_FILE" --set key="$CERTIFICATE_KEY_FILE" \
    --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE replicator REPLICATION LOGIN PASSWORD :'password';
-- The slot keeps the log until the standby has it; max_slot_wal_keep_size bounds the disk that this takes.
SELECT pg_create_physical_replication_slot('standby');
ALTER SYSTEM SET max_slot_wal_keep_size = '16GB';
-- Read at the next start, so that what is created before does not wait for a standby that cannot exist yet.
ALTER SYSTEM SET synchronous_standby_names = 'standby';
ALTER SYSTEM SET synchronous_commit = 'on';
ALTER SYSTEM SET ssl = 'on';
ALTER SYSTEM SET ssl_cert_file = :'certificate';
ALTER SYSTEM SET ssl_key_file = :'key';
SQL

# Nobody connects from another machine without TLS.
sed --in-place 's/^host all all all /hostssl all all all /' "$PGDATA/pg_hba.conf"
echo 'hostssl replication replicator all scram-sha-256' >> "$PGDATA/pg_hba.conf"
