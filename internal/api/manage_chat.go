package api

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/internal/api/form"
	"parley/internal/wire"
)

// listedChat is a row of the list of conversations.
type listedChat struct {
	Channel  parley.ChannelCode `json:"channel"`
	ID       parley.ContactID   `json:"id"` // of the contact or group
	IsGroup  bool               `json:"is_group"`
	Name     string             `json:"name"`
	Archived bool               `json:"archived"`
	Messages int64              `json:"messages"`
	Unread   int                `json:"unread"`
	Last     wire.Message       `json:"last"`
}

const (
	chatCursorStart = "c" // prefix of a cursor, so that it is no number
	maxListed       = 100
	maxContactChats = 200 // of one contact, one per channel
)

// listChats lists the chats of a channel or of all, newest first, or finds some by a name or a number.
func (s *server) listChats(ctx context.Context, r *request) (any, error) {
	q := parley.ChatQuery{Channel: parley.ChannelCode(r.http.PathValue("code")), Limit: int(r.Whole("limit", 50, 1, maxListed))}
	text := strings.TrimSpace(r.OptionalText("search", 1, maxSought))
	q.After = chatCursor(r.Form, "cursor")
	if err := r.Err(); err != nil {
		return nil, err
	}
	if err := s.checkChannel(ctx, q.Channel); err != nil {
		return nil, err
	}
	finder := s.config.Gateway.NewNameFinder()
	isSearch := text != ""
	if isSearch {
		q.After = parley.ChatCursor{}
		q.Number, q.Ending = numberPart(text)
		q.Contacts = finder.Search(ctx, s.codes(q.Channel), text)
	}
	var chats []parley.ChatSummary
	var err error
	if !isSearch || q.Number != "" || q.Ending != "" || len(q.Contacts) > 0 {
		chats, err = s.config.Gateway.ListChats(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	var meta cursorMeta
	if !isSearch && len(chats) == q.Limit {
		meta.NextCursor = chatCursorText(chats[len(chats)-1].Cursor)
	}
	rows, err := s.listedChats(ctx, r, finder.In(ctx), chats)
	return envelope{Success: true, Message: "OK", Data: rows, Meta: meta}, err
}

// listedChats are rows of chats, the newest message first.
func (s *server) listedChats(ctx context.Context, r *request, names wire.Names, chats []parley.ChatSummary) ([]listedChat, error) {
	slices.SortStableFunc(chats, func(a, b parley.ChatSummary) int { return b.Last.CreatedAt.Compare(a.Last.CreatedAt) })
	last := mapped(chats, func(c parley.ChatSummary) parley.Message { return c.Last })
	err := s.config.Store.AddRelated(ctx, last)
	links := parley.MediaLinks{Base: s.baseURL(r.http)}
	rows := make([]listedChat, len(chats))
	for i, c := range chats {
		rows[i] = listedChat{Channel: c.Channel, ID: c.Chat, IsGroup: c.Chat.IsGroup(), Name: names(c.Channel, c.Chat), Archived: c.Archived,
			Messages: c.Messages, Unread: c.Unread, Last: s.messageRow(&last[i], links, names)}
	}
	return rows, err
}

func (s *server) checkChannel(ctx context.Context, code parley.ChannelCode) error {
	if code == "" {
		return nil
	}
	_, err := s.channelNamed(ctx, code)
	return notFoundAs(err, parley.Errorf(parley.NotFound, "There is no channel %q.", truncate(string(code), 100)))
}

// codes lists one channel, or all.
func (s *server) codes(only parley.ChannelCode) []parley.ChannelCode {
	if only != "" {
		return []parley.ChannelCode{only}
	}
	return mapped(s.config.Gateway.Channels(), func(c parley.Channel) parley.ChannelCode { return c.Code })
}

var withoutSeparators = strings.NewReplacer("+", "", " ", "", "-", "", "(", "", ")", "", ".", "", "/", "")

// numberPart reads a part of a phone number as people write it: what the number begins with, what it ends with, or either. A number
// as it is dialled at home, 0812…, has no country: it is the end of the whole one. What is no number is neither.
func numberPart(text string) (start, end string) {
	text = strings.TrimSuffix(strings.TrimSpace(text), "@c.us")
	digits := withoutSeparators.Replace(text)
	if len(digits) > form.MaxNumber+2 || strings.Trim(digits, "0123456789") != "" {
		return "", ""
	}
	abroad, isAbroad := strings.CutPrefix(digits, "00")
	home, isHome := strings.CutPrefix(digits, "0")
	switch {
	case strings.HasPrefix(text, "+"):
		start = digits
	case isAbroad:
		start = abroad
	case isHome:
		end = home
	default:
		start, end = digits, digits
	}
	if len(start) < leastDigits || len(start) > form.MaxNumber || start[0] == '0' {
		start = ""
	}
	if len(end) < parley.MinEnding || len(end) > form.MaxNumber {
		end = ""
	}
	return start, end
}

func chatCursorText(at parley.ChatCursor) *string {
	if at == (parley.ChatCursor{}) {
		return nil
	}
	return textOrNil(chatCursorStart + strconv.FormatInt(at.At, 36) + "." + strconv.FormatInt(at.ID, 36))
}

func chatCursor(f form.Form, name string) (at parley.ChatCursor) {
	text := f.OptionalText(name, 1, 40)
	if text == "" {
		return at
	}
	values, ok := strings.CutPrefix(text, chatCursorStart)
	begin, id, both := strings.Cut(values, ".")
	var errs [2]error
	at.At, errs[0] = strconv.ParseInt(begin, 36, 64)
	at.ID, errs[1] = strconv.ParseInt(id, 36, 64)
	if !ok || !both || errors.Join(errs[:]...) != nil {
		f.Fail(name, "must be a cursor from an earlier response.")
	}
	return at
}

// chatDetail is a chat with some of its messages.
type chatDetail struct {
	Channel  parley.ChannelCode `json:"channel"`
	ID       parley.ContactID   `json:"id"`
	IsGroup  bool               `json:"is_group"`
	Name     string             `json:"name"`
	Archived bool               `json:"archived"`
	Messages int64              `json:"messages"` // how many there are; also the position of the newest
	History  []chatMessage      `json:"history"`  // newest first
}

// chatMessage is a message in a conversation.
type chatMessage struct {
	wire.Message `json:",inline"`
	Position     int64   `json:"position"`
	OwnReaction  *string `json:"own_reaction"`
	SentBy       *sender `json:"sent_by"`
}

// readChat reads a page of a conversation: up to a position, around a message, or the newest.
func (s *server) readChat(ctx context.Context, r *request) (any, error) {
	code, chat := parley.ChannelCode(r.http.PathValue("code")), chatInPath(r.http.PathValue("chat"))
	limit := int(r.Whole("limit", 50, 1, maxListed))
	newest := r.Whole("before", 0, 2, 1<<40) - 1
	message := r.OptionalText("message", 1, 200)
	if err := r.Err(); err != nil {
		return nil, err
	}
	if err := s.checkChannel(ctx, code); err != nil {
		return nil, err
	}
	if message != "" {
		at, err := s.findPosition(ctx, code, chat, message)
		if err != nil {
			return nil, err
		}
		newest = at + int64(limit)/2
	}
	ms, from, total, err := s.config.Gateway.HistoryAt(ctx, code, chat, max(newest, 0), limit)
	if err != nil {
		return nil, notFoundAs(err, parley.Errorf(parley.NotFound, "Channel %s has no chat with this contact or group yet.", code))
	}
	names := s.config.Gateway.NewNameFinder().In(ctx)
	d := chatDetail{Channel: code, ID: chat, IsGroup: chat.IsGroup(), Messages: total}
	if d.History, err = s.chatMessages(ctx, r, names, ms, from); err != nil {
		return nil, err
	}
	if len(ms) > 0 {
		d.ID = ms[0].Chat // as the network spells it
	}
	known, err := s.config.Store.Chat(ctx, code, chat)
	d.Name, d.Archived = names(code, d.ID), known.Archived
	return ok("OK", d), err
}

// chatInPath reads a contact or a group: an id, or a number.
func chatInPath(text string) parley.ContactID {
	if digits, _ := numberPart(text); digits != "" {
		return parley.NewContactID(digits)
	}
	return parley.ContactID(text)
}

// findPosition returns the position of a message, which may be named by its bare id, in a chat.
func (s *server) findPosition(ctx context.Context, code parley.ChannelCode, chat parley.ContactID, id string) (int64, error) {
	none := parley.Errorf(parley.NotFound, "This message does not exist in this chat.")
	ref, err := parley.ParseMessageRef(id)
	if err != nil {
		return 0, none
	}
	if ref.IsBare() { // the same id may also be in another chat
		ref.Chat, ref.FromMe = chat, true
	}
	m, err := s.config.Store.Message(ctx, code, ref)
	if errors.Is(err, parley.ErrNotFound) && ref.FromMe {
		ref.FromMe = false
		m, err = s.config.Store.Message(ctx, code, ref)
	}
	if err != nil {
		return 0, notFoundAs(err, none)
	}
	position, err := s.config.Store.Position(ctx, m.Seq)
	if err == nil && position == 0 {
		err = none // an operation
	}
	return position, err
}

// chatMessages describes messages of a chat. newest is the position of the first one.
func (s *server) chatMessages(ctx context.Context, r *request, names wire.Names, ms []parley.Message, newest int64) ([]chatMessage, error) {
	senders, err := s.findSenders(ctx, ms)
	links := parley.MediaLinks{Base: s.baseURL(r.http)}
	rows := make([]chatMessage, len(ms))
	for i := range ms {
		m := &ms[i]
		rows[i] = chatMessage{s.messageRow(m, links, names), newest - int64(i), textOrNil(m.OwnReaction), senders[m.ID]}
	}
	return rows, err
}

// contactOverview is what all channels know of a contact.
type contactOverview struct {
	ContactID parley.ContactID `json:"contact_id"`
	Number    string           `json:"number"`
	Name      string           `json:"name"`
	Chats     []listedChat     `json:"chats"`
	OTPs      []otpRow         `json:"otps"`
}

// readContact reads the chats with a contact on all channels, and its one-time passwords without their codes.
func (s *server) readContact(ctx context.Context, r *request) (any, error) {
	id := chatInPath(r.http.PathValue("contact"))
	chats, err := s.config.Store.ChatsWith(ctx, id, maxContactChats)
	if err != nil {
		return nil, err
	}
	ledgers, err := s.config.Store.Ledgers(ctx, id)
	if err != nil {
		return nil, err
	}
	links, err := s.config.Store.ContactLinks(ctx, id, maxFound)
	if err != nil {
		return nil, err
	}
	if len(chats)+len(ledgers)+len(links) == 0 {
		return nil, parley.Errorf(parley.NotFound, "No channel has a chat with this contact.")
	}
	c := contactOverview{ContactID: id, Number: id.Number()}
	if c.Chats, err = s.listedChats(ctx, r, s.config.Gateway.NewNameFinder().In(ctx), chats); err != nil {
		return nil, err
	}
	for _, l := range ledgers {
		if l.Code.ID != "" {
			c.OTPs = append(c.OTPs, codeRow(l.Code, s.config.Gateway.Now(l.Code.Channel)))
		}
	}
	for _, l := range links {
		c.OTPs = append(c.OTPs, linkRow(l, s.config.Gateway.Now(l.Channel)))
	}
	newestFirst(c.OTPs)
	for _, chat := range c.Chats {
		c.Name = cmp.Or(c.Name, chat.Name)
	}
	return ok("OK", c), nil
}
