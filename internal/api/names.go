package api

import (
	"context"
	"sync"
	"time"

	"parley"
)

const (
	namesFor    = 5 * time.Minute // how long a channel's names are good
	namesAgain  = time.Minute     // after which those that could not be read are tried again
	namesWithin = time.Second     // a list must not wait longer for them: they only make it nicer
	maxNames    = 5000            // of a channel
	maxAsked    = 5               // channels in one request; the others have theirs with the next one
)

// names knows what channels call their contacts. It is a copy, read again now and then.
type names struct {
	mu sync.Mutex
	by map[nameKey]nameList
}

// nameKey is whose contacts they are: a channel with the account that it has.
type nameKey struct {
	channel int64
	number  string
}

type nameList struct {
	until time.Time // to be read again after
	of    map[parley.ContactID]string
}

// fresh returns a channel's names, and whether they are good.
func (n *names) fresh(key nameKey) (map[parley.ContactID]string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	list, there := n.by[key]
	return list.of, there && time.Now().Before(list.until)
}

func (n *names) keep(key nameKey, list nameList) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.by == nil {
		n.by = map[nameKey]nameList{}
	}
	if list.of == nil {
		list.of = n.by[key].of // better than none
	}
	n.by[key] = list
}

// caller finds the names of contacts for one request.
type caller struct {
	*server
	asked int
	of    map[parley.ChannelCode]map[parley.ContactID]string
}

func (s *server) newCaller() *caller {
	return &caller{server: s, of: map[parley.ChannelCode]map[parley.ContactID]string{}}
}

// name is what a channel calls a contact; empty: nothing, or that is not known now.
func (c *caller) name(ctx context.Context, code parley.ChannelCode, id parley.ContactID) string {
	list, there := c.of[code]
	if !there {
		list = c.read(ctx, code)
		c.of[code] = list
	}
	return list[id]
}

func (c *caller) read(ctx context.Context, code parley.ChannelCode) map[parley.ContactID]string {
	channel, _ := c.Gateway.Channel(code)
	key := nameKey{channel.ID, channel.Number}
	list, good := c.contactNames.fresh(key)
	if good || c.asked >= maxAsked {
		return list
	}
	c.asked++
	ctx, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	session, err := c.Gateway.Session(code)
	if err != nil {
		return list
	}
	contacts, _, err := session.Contacts(ctx, parley.Page{Limit: maxNames})
	if err != nil {
		c.contactNames.keep(key, nameList{until: time.Now().Add(namesAgain)})
		return list
	}
	list = make(map[parley.ContactID]string, len(contacts))
	for _, one := range contacts {
		list[one.ID] = one.Name
	}
	until := time.Now().Add(namesFor)
	if channel.Network == parley.Sandbox {
		until = time.Now() // they are at hand, and change while somebody watches
	}
	c.contactNames.keep(key, nameList{until, list})
	return list
}
