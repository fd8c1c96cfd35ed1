package app

import (
	"errors"
	"fmt"
	"syscall"

	"parley/internal/doctor"
	"parley/internal/store"
)

// DataError says in a sentence what is wrong with a data directory and what to do.
type DataError struct{ Sentence string }

func (e *DataError) Error() string { return e.Sentence }

// explain turns an error of what is in the directory into a sentence, where the cause is known.
func (d Dir) explain(err error) error {
	if err == nil {
		return nil
	}
	if _, told := errors.AsType[*ConfigError](err); told {
		return err
	}
	if _, told := errors.AsType[*DataError](err); told {
		return err
	}
	switch {
	case store.IsDamage(err):
		return &DataError{fmt.Sprintf("The database %s is damaged (%s). Nothing was changed. Restore a backup with: parley restore FILE "+
			"--data %s",
			d.Database(), cause(err), d)}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), store.IsFull(err),
		store.IsDiskError(err) && doctor.FreeDisk(string(d)) < doctor.NoDisk:
		return &DataError{fmt.Sprintf("The disk that holds %s is full (%s). Free some space, then start again.", d, cause(err))}
	}
	return err
}

// cause is what the system or the database said: the innermost error.
func cause(err error) string {
	if found := store.FoundDamage(err); found != "" {
		return found
	}
	for {
		inner := errors.Unwrap(err)
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			inner = several.Unwrap()[0]
		}
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
