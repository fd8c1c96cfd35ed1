//go:build race

package crash_test

// The program is built like the tests, with the race detector, but for SQLite: see "make race".
var buildFlags = []string{"-race", "-gcflags=modernc.org/sqlite/lib=-race=false", "-gcflags=modernc.org/libc/...=-race=false"}
