package store

import "cmp"

// StorageLimits bound what is stored of files, in bytes. Zero: no limit.
type StorageLimits struct {
	// PerDay is for files that a channel stores within 24 hours. A file that it has already does not count.
	PerDay int64
	// PerContact and PerChannel are for files that come in within 24 hours from one contact, and from all contacts of a channel,
	// that never got a message from the channel.
	PerContact, PerChannel int64
	// MinFree is the free space of a directory below which no file is stored.
	MinFree int64
}

// DefaultStorageLimits are those of a server without settings.
var DefaultStorageLimits = StorageLimits{PerDay: 10 << 30, PerContact: 100 << 20, PerChannel: 1 << 30, MinFree: 1 << 30}

// OrDefault returns the limits with defaults for zero, and zero for what is negative.
func (l StorageLimits) OrDefault() StorageLimits {
	for _, limit := range []struct {
		of        *int64
		byDefault int64
	}{
		{&l.PerDay, DefaultStorageLimits.PerDay}, {&l.PerContact, DefaultStorageLimits.PerContact},
		{&l.PerChannel, DefaultStorageLimits.PerChannel}, {&l.MinFree, DefaultStorageLimits.MinFree},
	} {
		*limit.of = max(0, cmp.Or(*limit.of, limit.byDefault))
	}
	return l
}
