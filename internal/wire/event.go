package wire

import (
	"encoding/json"

	"parley"
)

// Event is an event as webhooks and streams get it.
type Event struct {
	ID        parley.EventID     `json:"id"`
	Seq       int64              `json:"seq"`
	Type      parley.EventType   `json:"type"`
	Channel   parley.ChannelCode `json:"channel"`
	Timestamp Time               `json:"timestamp"`
	Data      json.RawMessage    `json:"data"`
}

// EncodeEvent writes an event. The data of one about a message are the message and what happened to it.
func EncodeEvent(e *parley.Event, linkTo parley.MediaLink, names Names) ([]byte, error) {
	data, err := withNames(e, names)
	if err != nil {
		return nil, err
	}
	if e.Message != nil {
		message, err := json.Marshal(NewMessage(e.Message, linkTo, names))
		if err != nil {
			return nil, err
		}
		data = join(message, data)
	}
	return json.Marshal(Event{e.ID, e.Seq, e.Type, e.Channel, Time{e.At}, data})
}

// join puts the fields of the second object at the end of the first.
func join(first, second []byte) []byte {
	if len(second) <= len("{}") {
		return first
	}
	return append(append(first[:len(first)-1:len(first)-1], ','), second[1:]...)
}

// withNames adds the names of the contact and the group to the data of an event.
func withNames(e *parley.Event, names Names) (json.RawMessage, error) {
	if e.Message == nil {
		return nameObject(e.Data, e.Channel, names)
	}
	if e.Type != parley.MessageReaction && e.Type != parley.PollVoted {
		return e.Data, nil
	}
	var who map[string]json.RawMessage // the reaction or the vote
	err := json.Unmarshal(e.Data, &who)
	for name, object := range who {
		if err == nil {
			who[name], err = nameObject(object, e.Channel, names)
		}
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(who)
}

func nameObject(object json.RawMessage, channel parley.ChannelCode, names Names) (json.RawMessage, error) {
	var of struct {
		ContactID parley.ContactID `json:"contact_id"`
		GroupID   parley.GroupID   `json:"group_id"`
	}
	if err := json.Unmarshal(object, &of); err != nil {
		return nil, err
	}
	var add struct {
		ContactName *string `json:"contact_name,omitempty"`
		GroupName   *string `json:"group_name,omitempty"`
	}
	if of.ContactID != "" {
		name := names.find(channel, of.ContactID)
		add.ContactName = &name
	}
	if of.GroupID != "" {
		name := names.find(channel, of.GroupID.Chat())
		add.GroupName = &name
	}
	found, err := json.Marshal(add)
	return join(object, found), err
}
