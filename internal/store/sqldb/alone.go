package sqldb

// Alone reports whether no other node is in a transaction that called it for the same schema and key. It stays so until the
// commit. Nodes use it for work that one of them should do, such as purging. On SQLite there are no other nodes.
func (tx *Tx) Alone(key int) (alone bool, err error) {
	if !tx.IsPostgres() {
		return true, nil
	}
	err = tx.QueryRow(`SELECT pg_try_advisory_xact_lock(hashtext(current_schema()), $1)`, []any{key}, &alone)
	return alone, err
}
