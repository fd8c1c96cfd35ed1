package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/media"
	"parley/internal/network/sandbox"
	"parley/internal/store"
)

type acted struct {
	MessageID string           `json:"message_id"`
	ID        parley.MessageID `json:"id"`
	Timestamp string           `json:"timestamp"`
}

var (
	// phoneActs are what a phone does with a message, and phoneKinds everything that it sends.
	phoneActs  = []string{"reaction", "vote", "edit", "delete"}
	phoneKinds = append(slices.DeleteFunc(slices.Clone(recordKinds), func(kind string) bool { return readers[parley.Kind(kind)] == nil }),
		phoneActs...)
)

func (s *server) sendAsPhone(ctx context.Context, r *request) (any, error) {
	kind := r.Choice("type", true, phoneKinds...)
	acts, owner := slices.Contains(phoneActs, kind), r.Bool("from_owner", false)
	if owner && acts {
		r.Fail("from_owner", "must be false: only the messages of the owner can be simulated.")
	}
	if reason := readUnreadable(r); reason != "" && (owner || acts) {
		r.Fail("unreadable", "must be left out: only the messages of the phone can be unreadable.")
	}
	var p outgoing
	switch read, known := readers[parley.Kind(kind)]; {
	case acts:
		return s.actAsPhone(ctx, r, kind)
	case parley.Kind(kind).IsMedia() && r.IsObject("file"):
		if file, _ := r.Object("file", false); file.Has("data") {
			return s.sendPicked(ctx, r, kind, file)
		}
		p = read(r.Form)
	case known:
		p = read(r.Form)
	}
	p.preview = false // phones send no previews
	group := optionalGroup(r.Form)
	repliesInChat := func() error {
		if p.replyTo == "" {
			return nil
		}
		return s.config.Sandbox.CheckMessage(ctx, r.channel.Code, r.number(), "reply_to", string(p.replyTo))
	}
	if err := r.Failed(repliesInChat); err != nil {
		return nil, err
	}
	drafts, err := s.drafts(ctx, r, r.channel.Code, parley.NewContactID(r.number()), []outgoing{p})
	if err != nil {
		return nil, err
	}
	return s.say(ctx, r, sandbox.Outgoing{Content: drafts[0].Content, ReplyTo: string(p.replyTo), Group: group})
}

// readUnreadable returns why the channel cannot read a message of a phone; empty: it can.
func readUnreadable(r *request) parley.UnreadableReason {
	if !r.Has("unreadable") {
		return ""
	}
	return parley.UnreadableReason(r.Choice("unreadable", true, string(parley.Undecryptable), string(parley.ViewOnce)))
}

func optionalGroup(f form.Form) parley.GroupID {
	if !f.Has("group_id") {
		return ""
	}
	return f.Group("group_id")
}

// changeGroupAsPhone makes a phone leave a group, join it, rename it or set its timer.
func (s *server) changeGroupAsPhone(ctx context.Context, r *request) (any, error) {
	group, action := r.Group("group_id"), r.Choice("action", true, "leave", "join", "rename", "disappearing")
	read := r.OptionalText
	if action == "rename" {
		read = r.Text
	}
	name, timer := read("name", 1, 100), 0
	if action == "disappearing" || r.Has("seconds") {
		timer = readTimer(r, "seconds")
	}
	err := r.Err()
	switch {
	case err != nil:
	case action == "leave":
		err = s.config.Sandbox.LeaveGroup(ctx, r.channel.Code, r.number(), group)
	case action == "join":
		err = s.config.Sandbox.JoinGroup(ctx, r.channel.Code, r.number(), group)
	case action == "disappearing":
		err = s.config.Sandbox.SetGroupTimer(ctx, r.channel.Code, r.number(), group, timer)
	default:
		err = s.config.Sandbox.RenameGroup(ctx, r.channel.Code, r.number(), group, name)
	}
	return ok("Done by the phone", struct{}{}), err
}

type callData struct {
	ID parley.MessageID `json:"id"` // of the call
}

// callAsPhone makes a phone call the channel, or hang up.
func (s *server) callAsPhone(ctx context.Context, r *request) (any, error) {
	video, ends, read := r.Bool("video", false), r.Choice("action", true, "start", "end") == "end", r.OptionalText
	if ends {
		read = r.Text
	}
	id := read("id", 1, 100)
	if err := r.Err(); err != nil {
		return nil, err
	}
	if !ends {
		id = "" // a new call gets its own
	}
	call, err := s.config.Sandbox.Call(ctx, r.channel.Code, r.number(), parley.MessageID(id), video)
	return ok("Done by the phone", callData{call}), err
}

func (s *server) say(ctx context.Context, r *request, what sandbox.Outgoing) (any, error) {
	what.ID, what.Owner = r.phoneMessage, r.Bool("from_owner", false)
	what.Unreadable = readUnreadable(r)
	if file := parley.MediaIn(what.Content); file != nil {
		if err := s.holdFile(ctx, r.channel.Code, *file); err != nil {
			s.removeFile(ctx, *file)
			return nil, err
		}
	}
	m, err := s.config.Sandbox.SendAs(ctx, r.channel.Code, r.number(), what)
	return said(m), err
}

func said(m sandbox.Message) envelope {
	return ok("Sent by the phone", acted{m.ID.String(), m.ID.ID, parley.Stamp(m.At)})
}

// sayOnce wraps an endpoint that sends a message as a phone. The network stores the message and the store the response, so the process
// may end in between. The id of the message follows from the idempotency key: a retry finds the message.
func (s *server) sayOnce(do endpoint) endpoint {
	return func(ctx context.Context, r *request) (any, error) {
		if r.key == nil {
			return do(ctx, r)
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%x", r.key.Scope, r.key.Key, r.key.Fingerprint))
		id := sandbox.MessageIDFrom([9]byte(sum[:9]))
		m, err := s.config.Sandbox.Message(ctx, r.channel.Code, r.number(), string(id))
		switch {
		case err == nil && time.Since(m.At) < keyLife:
			return said(m), nil
		case errors.Is(err, parley.ErrNotFound):
			r.phoneMessage = id
		case err != nil && parley.ToCode(err) != parley.Invalid: // a bad number is reported with the other fields
			return nil, err
		}
		return do(ctx, r)
	}
}

// holdFile makes an upload of a file that a phone sends: it stays for a day, in which the channel fetches it.
func (s *server) holdFile(ctx context.Context, channel parley.ChannelCode, m parley.Media) error {
	u := store.Upload{Key: media.NewKey(), Channel: channel, File: m.Key, MIME: m.MIME, Filename: m.Filename, Size: m.Size,
		At: s.config.Gateway.Clock(), Used: true}
	return s.tx(ctx, func(tx *store.Tx) error { return errors.Join(tx.UseFile(ctx, u.File), tx.AddUpload(ctx, u)) })
}

func (s *server) actAsPhone(ctx context.Context, r *request, kind string) (any, error) {
	ref := r.Message("message_id")
	id, code, number := ref.String(), r.channel.Code, r.number()
	if ref.IsBare() { // the response contains the full id
		if m, err := s.config.Store.Message(ctx, code, ref); err == nil {
			ref = m.Ref()
		}
	}
	var reaction, text string
	options := []string{}
	switch kind {
	case "reaction":
		reaction = emoji(r.Form, "reaction")
	case "edit":
		text = r.Text("message", 1, maxText)
	case "vote":
		options = append(options, r.Texts("options", 0, 12, 1, 100)...)
	}
	err := r.Failed(func() error { return s.config.Sandbox.CheckMessage(ctx, code, number, "message_id", id) })
	switch {
	case err != nil:
	case kind == "reaction":
		err = s.config.Sandbox.React(ctx, code, number, id, reaction)
	case kind == "edit":
		err = s.config.Sandbox.Edit(ctx, code, number, id, text)
	case kind == "vote":
		err = s.config.Sandbox.Vote(ctx, code, number, id, options)
	default:
		err = s.config.Sandbox.Delete(ctx, code, number, id)
	}
	return ok("Done by the phone", acted{ref.String(), ref.ID, parley.Stamp(time.Now())}), err
}

type readData struct {
	Read int `json:"read"` // newly read messages
}

func (s *server) readAsPhone(ctx context.Context, r *request) (any, error) {
	var id string
	if r.Has("message_id") {
		id = r.Message("message_id").String()
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	n, err := s.config.Sandbox.Read(ctx, r.channel.Code, r.number(), id)
	return ok("Read by the phone", readData{n}), err
}

// openAsPhone sends the text of a chat link, as a tap on the link does. An open login link may be named by its id.
func (s *server) openAsPhone(ctx context.Context, r *request) (any, error) {
	var text string
	switch {
	case r.Has("id") && r.Has("link"):
		r.Fail("id", "must not be sent together with link. Send one of them.")
	case r.Has("id"):
		prompt, err := s.readPrompt(ctx, r, parley.OTPID(r.Text("id", 1, 100)))
		if err != nil {
			return nil, err
		}
		text = prompt
	case r.Has("link"):
		text = r.linkText("link")
	default:
		r.Fail("link", "or id is required: a link that opens a chat with a text, or the id of a login link.")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return s.say(ctx, r, sandbox.Outgoing{Content: parley.Text{Body: text}})
}

func (s *server) readPrompt(ctx context.Context, r *request, id parley.OTPID) (string, error) {
	link, err := s.config.Store.Link(ctx, id)
	switch {
	case errors.Is(err, parley.ErrNotFound), err == nil && link.Channel != r.channel.Code:
		r.Fail("id", "must be the id of a login link of this channel.")
		return "", nil
	case err != nil:
		return "", err
	}
	prompt, err := s.config.OTP.Prompt(link)
	if errors.Is(err, parley.ErrNotFound) {
		status := link.StatusAt(s.config.Gateway.Now(link.Channel))
		r.Fail("id", "names a login link that is %s, so its text was deleted. Send its link instead.", status)
		return "", nil
	}
	return prompt, err
}

// linkText returns the text of a chat link. The link of a simulated phone also names a channel.
func (r *request) linkText(name string) string {
	link := r.Text(name, 1, 8192)
	text, to := textIn(link)
	switch {
	case link == "":
	case text == "":
		r.Fail(name, "must be a link that opens a chat with a text.")
	case to != "" && to != string(r.channel.Code):
		r.Fail(name, "opens a chat with channel %s, but this request is for channel %s.", to, r.channel.Code)
	}
	return text
}

// textIn returns the text in the query or fragment of a link, and the channel that it names, if any.
func textIn(link string) (text, to string) {
	u, err := url.Parse(link)
	if err != nil {
		return "", ""
	}
	if query := u.Query(); query.Get("text") != "" {
		return query.Get("text"), query.Get("to")
	}
	fragment, err := url.ParseQuery(u.EscapedFragment())
	if err != nil {
		return "", ""
	}
	return fragment.Get("text"), fragment.Get("to")
}
