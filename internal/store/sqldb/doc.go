// Package sqldb runs one database, of SQLite or PostgreSQL (engine.go): it opens and migrates it, reads it through a pool of
// connections and writes it with a single goroutine. It does not know what the tables mean. Statements are prepared once per
// connection. Parameters are written $1, $2 ….
//
// # Group commit
//
// A commit costs an fsync, and more callers arrive meanwhile. So [DB.Write] enqueues its function for the writer, which
// runs all enqueued functions inside one BEGIN … COMMIT. If one of them fails, the transaction is rolled back and run again
// with a savepoint around each function. That is why such a function may run twice.
//
// Invariants:
//
//   - A write that returns nil is committed. A write that fails changes nothing, and does not affect those that share its
//     transaction.
//   - An error that means that the database is unavailable (locked, full, damaged, closed) has the code parley.Unavailable.
//     It ends the transaction for all who share it. The next transaction starts again.
//   - No call hangs. Reads end with their context, wait a limited time for a connection and hold it a limited time
//     (pool.go). Writes behind a stuck transaction fail (health.go).
//   - Rows must be closed before the next query. Callers that hold one connection and wait for another could block all
//     readers.
//   - After any statement finds damage, nothing is written (health.go).
//   - Checks for damage (check.go), copies (backup.go) and checkpoints (log.go) use connections of their own.
package sqldb
