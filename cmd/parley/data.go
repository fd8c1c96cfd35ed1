package main

import (
	"context"
	"fmt"
	"time"

	"parley"
	"parley/internal/app"
)

// withData runs do on the open data directory, which must be there unless do may make it.
func (c *cli) withData(ctx context.Context, make bool, do func(*app.Data) error) (err error) {
	if !make && !c.dir().Exists() {
		return fail(exitUsage, "%s holds no Parley data. Start a server with: parley dev, or name the directory with --data", c.dir())
	}
	isNew := !c.dir().Exists()
	data, err := app.OpenData(ctx, c.dir(), c.warnings())
	if err != nil {
		return err
	}
	if isNew && !c.quiet { // programs hear it too: a forgotten --data is found out by nothing else
		fmt.Fprintf(c.err, "parley: %s is a new data directory. If there is one already, name it with --data or PARLEY_DATA\n", c.dir())
	}
	defer func() {
		if closing := data.Close(); err == nil {
			err = closing
		}
	}()
	return do(data)
}

// span reads a length of time as people write it: Go's units, and days.
func span(s string) (time.Duration, error) {
	d, err := parley.ParseDuration(s)
	return time.Duration(d), err
}
