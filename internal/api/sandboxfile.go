package api

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"parley"
	"parley/internal/api/form"
	"parley/internal/media"
	"parley/internal/network/sandbox"
)

// sendPicked has a phone send a file that the request itself holds, as somebody who picks one on a phone:
// there is no server that it could be fetched from.
func (s *server) sendPicked(ctx context.Context, r *request, kind string, file form.Form) (envelope[acted], error) {
	replyTo, caption := r.ReplyTo(), caption(r.Form)
	data, name := base64Of(file, "data"), file.OptionalText("filename", 0, 255)
	if file.Has("url") {
		file.Fail("url", "must not be given beside data: one of them says what the file is.")
	}
	if err := r.Err(); err != nil {
		return envelope[acted]{}, err
	}
	if kind == "voice" {
		return s.sendRecorded(ctx, r, data, name, replyTo)
	}
	m, err := s.Media.Keep(data, name)
	if err != nil {
		return envelope[acted]{}, err
	}
	defer s.Media.Remove(m.Key) // the network has its own copy
	content := picked(file, kind, m, caption)
	if err := r.Err(); err != nil {
		return envelope[acted]{}, err
	}
	return s.say(ctx, r, sandbox.Outgoing{Content: content, Media: data, ReplyTo: string(replyTo)})
}

// sendRecorded has a phone send a voice note. Browsers record in formats of their own; phones send ogg
// with opus, and so that is what the channel gets.
func (s *server) sendRecorded(ctx context.Context, r *request, data []byte, name string, replyTo parley.MessageID) (envelope[acted], error) {
	m, err := s.Media.Recorded(ctx, data, name)
	if e, ok := errors.AsType[*media.Error](err); ok {
		r.Note("file.data", e.Sentence)
		return envelope[acted]{}, r.Err()
	}
	if err != nil {
		return envelope[acted]{}, err
	}
	defer s.Media.Remove(m.Key) // the network has its own copy
	content := parley.Voice{Media: m}
	kept, err := s.readMedia(content)
	if err != nil {
		return envelope[acted]{}, err
	}
	return s.say(ctx, r, sandbox.Outgoing{Content: content, Media: kept, ReplyTo: string(replyTo)})
}

// picked makes the content of a file by what it is to be sent as. Nothing is converted.
func picked(f form.Form, kind string, m parley.Media, caption string) parley.Content {
	wants := func(begin, sentence string) {
		if !strings.HasPrefix(m.MIME, begin) {
			f.Fail("data", "%s", sentence)
		}
	}
	switch kind {
	case "image":
		wants("image/", "must be a picture.")
		return parley.Image{Media: m, Caption: caption}
	case "video":
		wants("video/", "must be a video.")
		return parley.Video{Media: m, Caption: caption}
	}
	return parley.File{Media: m, Caption: caption}
}

// base64Of reads required bytes in base64; how many is bounded by the request.
func base64Of(f form.Form, name string) []byte {
	data, err := base64.StdEncoding.DecodeString(f.Text(name, 1, maxBody))
	if err != nil {
		f.Fail(name, "must be the bytes of the file in base64.")
	}
	return data
}
