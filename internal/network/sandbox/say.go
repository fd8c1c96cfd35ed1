package sandbox

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"image"
	_ "image/gif"  // described when a phone sends one
	_ "image/jpeg" // likewise
	_ "image/png"  // likewise
	"net/http"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// saying is a message on its way from a phone.
type saying struct {
	id      parley.MessageID
	content parley.Content
	replyTo parley.MessageID
	media   []byte
	at      time.Time
}

// say records a message from a phone, leaves it for the channel and returns its place in the record.
func (w *world) say(tx *sqldb.Tx, p *phone, s saying) (seq int64, err error) {
	kind, text := s.content.Kind(), s.content.Text()
	data, err := parley.EncodeContent(s.content)
	if err != nil {
		return 0, err
	}
	seq = w.net.nextSeq()
	_, err = tx.Exec(insertMessage, seq, p.id, fromPhone, string(s.id), string(kind), text, data, string(s.replyTo), s.at.UnixMilli())
	if err != nil {
		return 0, err
	}
	if s.content.Kind().IsMedia() {
		if err := w.upload(tx, p, s.id, s.media); err != nil {
			return 0, err
		}
	}
	return seq, w.post(tx, p, parcel{Type: parcelMessage, Target: s.id, Kind: kind, Text: text, Data: data, ReplyTo: s.replyTo})
}

// message is what the record has of it.
func (s saying) message(p *phone, seq int64) Message {
	m := Message{
		ID: parley.MessageRef{Chat: p.contact, ID: s.id}, Kind: s.content.Kind(), Body: s.content.Text(), Content: s.content,
		Media: parley.MediaOf(s.content), ReplyTo: s.replyTo, Status: parley.Received, At: s.at.UTC().Truncate(time.Millisecond),
		Copies: 1, Cursor: cursorAt(seq),
	}
	m.Codes, m.Links = Codes(m.Body), Links(m.Body)
	return m
}

// describe checks what a phone is to send and fills in what the bytes tell of its file.
func describe(o Outgoing) (parley.Content, error) {
	if o.Content != nil && o.Content.Kind().IsMedia() && len(o.Media) == 0 {
		return nil, parley.InvalidField("file", "file must have content.")
	}
	switch c := o.Content.(type) {
	case parley.Text:
		return c, nil
	case parley.Location:
		return c, nil
	case parley.Image:
		c.Media = described(c.Media, o.Media)
		if config, _, err := image.DecodeConfig(bytes.NewReader(o.Media)); err == nil {
			c.Media.Width, c.Media.Height = config.Width, config.Height
		}
		return c, nil
	case parley.Video:
		c.Media = described(c.Media, o.Media)
		return c, nil
	case parley.File:
		c.Media = described(c.Media, o.Media)
		return c, nil
	case parley.Voice:
		c.Media = described(c.Media, o.Media)
		return c, nil
	}
	return nil, parley.InvalidField("type", "type must be text, image, voice, video, file or location.")
}

func described(m parley.Media, data []byte) parley.Media {
	m.Size = int64(len(data))
	sum := sha256.Sum256(data)
	m.SHA256 = sum[:]
	if m.MIME == "" {
		m.MIME = http.DetectContentType(data)
	}
	return m
}

// newPhoneMessageID chooses an id as phones of the real network do: other than the gateway's own.
func newPhoneMessageID() parley.MessageID {
	random := make([]byte, 9)
	rand.Read(random) // never fails
	return parley.MessageID(fmt.Sprintf("3A%X", random))
}
