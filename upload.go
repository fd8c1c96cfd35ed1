package parley

import "time"

// StoredFile is a file in the storage. The messages and uploads of a channel with the same content share one.
type StoredFile struct {
	Key     string // the name that it is stored under
	Channel ChannelCode
	SHA256  []byte
	Size    int64
	At      time.Time // when it was stored
}

// Upload is a file that a caller sent for later messages.
type Upload struct {
	Key      string // of its id
	Channel  ChannelCode
	File     string // the key of the stored file
	MIME     string
	Filename string
	Size     int64
	At       time.Time // when it was uploaded or last used: it is removed UploadLife later
	Used     bool      // a message was made of it, so it does not count any more
}

// UploadLife is how long an upload stays after it was last used.
const UploadLife = 24 * time.Hour

func (u *Upload) ID() MediaID { return MediaID(mediaPrefix + u.Key) }
