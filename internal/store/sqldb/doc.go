// Package sqldb is one SQL database as this program uses them: opened with the right settings,
// migrated, read through a pool and written by a single goroutine that commits many callers'
// changes together. It knows nothing of what the tables mean.
//
// # Group commit
//
// A commit costs an fsync, and while one is under way more callers arrive. So [DB.Write] hands its
// function to the writer, which runs all those that wait inside one BEGIN … COMMIT. If one of them
// fails, the transaction is rolled back and run again with a savepoint around each, so that a bad
// write costs only itself. That is why such a function may run twice.
//
// An error that means "the database does not work now" (locked, full, damaged, closed) has the code
// parley.Unavailable, and ends the transaction for all who share it. Nobody is told that a write was
// kept which was not, and the next transaction begins afresh.
//
// # Nothing hangs
//
// Reads end with their context, wait a limited time for a connection and hold it a limited time (pool.go). Rows must be
// closed before the next query: a caller that holds one connection and waits for another blocks all readers, if there are enough
// of them. Writes behind a transaction that takes too long are refused, [DB.Writable] tries a write that changes nothing, and
// damage that any statement meets ends writing (health.go). Checks for damage (check.go), copies (backup.go) and checkpoints
// (log.go) have connections of their own.
//
// Statements are prepared once per connection. Parameters are written $1, $2 ….
package sqldb
