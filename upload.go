package parley

import "time"

// Upload is a file that a caller sent for later messages. Each message gets a copy of its own.
type Upload struct {
	Key      string // the name that it is stored under
	Channel  ChannelCode
	MIME     string
	Filename string
	Size     int64
	At       time.Time // when it was uploaded or last used: it is removed UploadLife later
	Used     bool      // a message was made of it, so it does not count any more
}

// UploadLife is how long an upload stays after it was last used.
const UploadLife = 24 * time.Hour

func (u *Upload) ID() MediaID { return MediaID(mediaPrefix + u.Key) }
