#!/usr/bin/env bash
# Runs the standby: copies the primary the first time, then follows it.
set -euo pipefail

if [ ! -e "$PGDATA" ]; then
    # The copy gets its name when it is complete. An interrupted one is made again.
    rm -rf "$PGDATA.draft"
    PGPASSWORD=$(cat "$REPLICATION_PASSWORD_FILE") pg_basebackup \
        --dbname="host=$PRIMARY port=${PRIMARY_PORT:-5432} user=replicator sslmode=verify-full sslrootcert=$CERTIFICATE_FILE" --pgdata="$PGDATA.draft" \
        --write-recovery-conf --wal-method=stream --slot=standby --checkpoint=fast
    mv "$PGDATA.draft" "$PGDATA"
fi

# The primary knows the standby by cluster_name. Promoted, it must not wait for a standby that it does not have.
exec postgres -c cluster_name=standby -c hot_standby=on -c synchronous_standby_names=
