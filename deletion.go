package parley

import "time"

// Deletion is the deletion of a channel. The channel is gone when it starts. What it had is purged in the background.
type Deletion struct {
	ID        int64 // the number of the channel
	Channel   ChannelCode
	Network   NetworkName // that still stores something of the channel; empty: none does
	StartedAt time.Time
	// FinishedAt is zero while anything of the channel is stored.
	FinishedAt time.Time
	Messages   int64  // that the channel had; negative: they are not counted yet
	Purged     int64  // of these messages
	Problem    string // why the last attempt failed, a sentence; empty: it did not
}

// DeletionRetention is how long a finished deletion is listed.
const DeletionRetention = 7 * 24 * time.Hour
