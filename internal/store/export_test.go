package store

import "context"

// OpenNarrow opens a store with one connection for reading: a call that queries while its rows are open waits for a
// connection that never becomes free, and gets an error after some seconds.
func OpenNarrow(ctx context.Context, path string) (*DB, error) {
	o, err := options(path)
	if err != nil {
		return nil, err
	}
	o.Readers = 1
	return open(ctx, o)
}
