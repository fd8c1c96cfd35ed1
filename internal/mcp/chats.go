package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"parley"
	"parley/internal/client"
	"parley/internal/wire"
)

type listChatsIn struct {
	Channel string `json:"channel,omitempty" jsonschema:"the code of the channel, if the token is for several"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many (default 20)"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"the cursor of the last result, to continue"`
}

// chat is a chat as tools return it.
type chat struct {
	Contact  string   `json:"contact" jsonschema:"the id of the contact or group, which other tools take as contact"`
	Name     string   `json:"name,omitempty" jsonschema:"of the contact or group"`
	IsGroup  bool     `json:"is_group"`
	Channel  string   `json:"channel,omitempty"`
	Messages int64    `json:"messages,omitempty" jsonschema:"how many it has"`
	Last     *message `json:"last,omitempty" jsonschema:"the last message"`
}

type listChatsOut struct {
	Chats  []chat `json:"chats"`
	Total  int64  `json:"total,omitempty" jsonschema:"how many there are, if that is known"`
	Cursor string `json:"cursor,omitempty" jsonschema:"pass it to continue; empty: there are no more"`
}

func (t *tools) listChats(ctx context.Context, in listChatsIn) (listChatsOut, error) {
	query := newQuery("limit", rowLimit(in.Limit), "cursor", in.Cursor)
	if t.config.Admin {
		return t.managedChats(ctx, in.Channel, query)
	}
	var rows []wire.Chat
	r, err := t.ofChannel(in.Channel).Get(ctx, "/api/chat", query, &rows)
	if err != nil {
		return listChatsOut{}, err
	}
	out := listChatsOut{Chats: make([]chat, len(rows)), Total: r.Meta.Total, Cursor: r.Meta.NextCursor}
	for i, row := range rows {
		id := cmp.Or(row.GroupID.Chat(), row.ContactID)
		out.Chats[i] = newChat(id, row.Name, in.Channel, row.Messages, row.Last)
	}
	return out, nil
}

// managedChats lists chats of a channel or of all with an admin token.
func (t *tools) managedChats(ctx context.Context, channel string, query url.Values) (listChatsOut, error) {
	path := client.Path("chats")
	if channel != "" {
		path = client.Path("channels", channel, "chats")
	}
	var rows []struct {
		Channel  parley.ChannelCode `json:"channel"`
		ID       parley.ContactID   `json:"id"`
		Name     string             `json:"name"`
		Messages int64              `json:"messages"`
		Last     *wire.Message      `json:"last"`
	}
	r, err := t.config.API.Get(ctx, path, query, &rows)
	if err != nil {
		return listChatsOut{}, err
	}
	out := listChatsOut{Chats: make([]chat, len(rows)), Cursor: r.Meta.NextCursor}
	for i, row := range rows {
		out.Chats[i] = newChat(row.ID, row.Name, string(row.Channel), row.Messages, row.Last)
	}
	return out, nil
}

func newChat(id parley.ContactID, name, channel string, messages int64, last *wire.Message) chat {
	c := chat{Contact: string(id), Name: name, IsGroup: id.IsGroup(), Channel: channel, Messages: messages}
	if last != nil {
		m := newMessage(last, channel)
		if runes := []rune(m.Text); len(runes) > maxPreview {
			m.Text, m.Length = string(runes[:maxPreview])+"…", max(m.Length, len(runes))
		}
		c.Last = &m
	}
	return c
}

// maxPreview is how many characters of its last message a list of chats has.
const maxPreview = 200

type findIn struct {
	Name    string `json:"name" jsonschema:"a part of the name, in upper or lower case, or of the number"`
	Channel string `json:"channel,omitempty" jsonschema:"the code of the channel, if the token is for several"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many contacts, and how many groups (default 20)"`
}

type findOut struct {
	Found []chat `json:"found" jsonschema:"contacts first, then groups"`
	Total int64  `json:"total,omitempty" jsonschema:"how many match, if that is known"`
}

func (t *tools) findContacts(ctx context.Context, in findIn) (findOut, error) {
	query := newQuery("search", in.Name, "limit", rowLimit(in.Limit))
	if t.config.Admin {
		chats, err := t.managedChats(ctx, in.Channel, query)
		return findOut{Found: chats.Chats}, err
	}
	out := findOut{Found: []chat{}}
	api := t.ofChannel(in.Channel)
	for _, path := range []string{"/api/contact", "/api/groups"} {
		var rows []struct {
			ID   parley.ContactID `json:"id"`
			Name string           `json:"name"`
		}
		accept := http.Header{"Accept": {"application/json"}} // contacts are a string otherwise
		r, err := api.CallWith(ctx, http.MethodGet, path, query, accept, nil, &rows)
		if refused, ok := errors.AsType[*client.Error](err); ok && refused.HasCode(parley.NotSupported) {
			continue // the network has no such list
		}
		if err != nil {
			return findOut{}, err
		}
		for _, row := range rows {
			out.Found = append(out.Found, newChat(row.ID, row.Name, in.Channel, 0, nil))
		}
		out.Total += r.Meta.Total
	}
	return out, nil
}

type readChatIn struct {
	Contact string `json:"contact" jsonschema:"the contact's phone number with its country code, or the id of a group"`
	Channel string `json:"channel,omitempty" jsonschema:"the code of the channel, if the token is for several"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many messages (default 20)"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"the cursor of the last result, for earlier messages"`
}

type messagesOut struct {
	Messages []message `json:"messages"`
	Cursor   string    `json:"cursor,omitempty" jsonschema:"pass it to continue; empty: there are no more"`
}

// maxResult is how many bytes of texts a result has, roughly: models have little room.
const maxResult = 32 << 10

// fitting returns how many of some messages fit a result, at least one.
func fitting(list []message) int {
	size := 0
	for i, m := range list {
		if size += len(m.Text) + 300; size > maxResult && i > 0 {
			return i
		}
	}
	return len(list)
}

func (t *tools) readChat(ctx context.Context, in readChatIn) (messagesOut, error) {
	chat, err := chatID(in.Contact)
	if err != nil {
		return messagesOut{}, err
	}
	skip := 0
	if in.Cursor != "" {
		if skip, err = strconv.Atoi(in.Cursor); err != nil || skip < 0 {
			return messagesOut{}, errors.New("cursor is not one of this tool. Pass the cursor of its last result")
		}
	}
	found, more, err := t.history(ctx, in.Channel, chat, cmp.Or(in.Limit, defaultRows), skip)
	if n := fitting(found); n < len(found) {
		found, more = found[:n], true
	}
	out := messagesOut{Messages: found}
	if more {
		out.Cursor = strconv.Itoa(skip + len(found))
	}
	slices.Reverse(found)
	return out, err
}

// history reads messages of a chat, newest first, and whether there are earlier ones.
func (t *tools) history(ctx context.Context, channel string, chat parley.ContactID, limit, skip int) ([]message, bool, error) {
	api, path, query := t.ofChannel(channel), "/api/chat/detail", newQuery(toField(chat), string(chat))
	if t.config.Admin {
		path, query = "/api/manage/messages", newQuery("channel", channel, "contact", string(chat))
	}
	var records []wire.Message
	if !t.config.Admin {
		query.Set("limit", strconv.Itoa(limit))
		query.Set("offset", strconv.Itoa(skip))
		r, err := api.Get(ctx, path, query, &records)
		return newMessages(records, channel), err == nil && r.Meta.Total > int64(skip+len(records)), err
	}
	r, err := api.List(ctx, path, query, skip+limit) // this list has no offset
	if err != nil || json.Unmarshal(r.Data, &records) != nil {
		return nil, false, err
	}
	return newMessages(records[min(skip, len(records)):], channel), r.Meta.NextCursor != "", nil
}

func newMessages(records []wire.Message, channel string) []message {
	list := make([]message, len(records))
	for i := range records {
		list[i] = newMessage(&records[i], channel)
	}
	return list
}
