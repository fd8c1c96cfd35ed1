package gateway

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
)

const (
	namesFor    = 5 * time.Minute // how long the names of a channel are cached
	namesAgain  = time.Minute     // retry after a failure
	namesWithin = time.Second     // names are optional, so a list waits no longer
	maxNames    = 5000            // per channel
	maxGroups   = 1000
	maxAsked    = 5   // channels read for one list; later requests read the others
	maxSearched = 100 // channels read for one search
	maxMatches  = 200 // contacts that a search by name finds
	maxWanted   = 64  // lists that wait to be read for events

	// simulatedFor is how long the names of a simulated network are cached: reading them is cheap, and they change often.
	simulatedFor = 200 * time.Millisecond
)

// nameKey is a channel with its current account.
type nameKey struct {
	channel int64
	number  string
	groups  bool // the names of its groups, else of its contacts
}

type nameList struct {
	until time.Time // expiry
	of    map[parley.ContactID]string
}

// names are those of contacts and groups, as channels knew them last.
type names struct {
	lists  sync.Map // nameList by nameKey
	wanted chan listKey
}

// KnownName returns the name of a contact or group, or "" if it is not known at once. What is old is read again afterwards.
func (g *Gateway) KnownName(code parley.ChannelCode, id parley.ContactID) string {
	want := listKey{code, id.IsGroup()}
	_, list := g.cachedNames(want)
	if !time.Now().Before(list.until) {
		select {
		case g.names.wanted <- want:
		default: // later events want it too
		}
	}
	return list.of[id]
}

// runNames reads what KnownName wants.
func (g *Gateway) runNames(ctx context.Context) {
	for {
		select {
		case want := <-g.names.wanted:
			g.NewNameFinder().list(ctx, want)
		case <-ctx.Done():
			return
		}
	}
}

func (g *Gateway) cachedNames(of listKey) (nameKey, nameList) {
	channel, _ := g.Channel(of.channel)
	key := nameKey{channel.ID, channel.Number, of.groups}
	cached, _ := g.names.lists.Load(key)
	list, _ := cached.(nameList)
	return key, list
}

// NameFinder finds the names of contacts and groups for one response.
type NameFinder struct {
	*Gateway
	left int // how many lists may be read from networks
	of   map[listKey]map[parley.ContactID]string
}

type listKey struct {
	channel parley.ChannelCode
	groups  bool
}

func (g *Gateway) NewNameFinder() *NameFinder {
	return &NameFinder{Gateway: g, left: maxAsked, of: map[listKey]map[parley.ContactID]string{}}
}

// In returns a function that finds the name of a contact or group; "" if it is not known now.
func (c *NameFinder) In(ctx context.Context) func(parley.ChannelCode, parley.ContactID) string {
	return func(code parley.ChannelCode, id parley.ContactID) string {
		return c.list(ctx, listKey{code, id.IsGroup()})[id]
	}
}

func (c *NameFinder) list(ctx context.Context, key listKey) map[parley.ContactID]string {
	names, there := c.of[key]
	if !there {
		names = c.read(ctx, key)
		c.of[key] = names
	}
	return names
}

func (c *NameFinder) read(ctx context.Context, of listKey) map[parley.ContactID]string {
	key, list := c.cachedNames(of)
	if time.Now().Before(list.until) || c.left <= 0 || ctx.Err() != nil {
		return list.of
	}
	c.left--
	ask, err := c.newReader(of)
	if err != nil {
		return list.of
	}
	limited, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	names, err := ask(limited)
	switch {
	case err == nil:
		list = nameList{time.Now().Add(namesFor), names}
	case ctx.Err() != nil:
		return list.of // the caller left, or has no time left
	default:
		list.until = time.Now().Add(namesAgain) // old names are better than none
	}
	if channel, _ := c.Channel(of.channel); c.Network(channel.Network).Simulated {
		list.until = time.Now().Add(simulatedFor)
	}
	c.names.lists.Store(key, list)
	return list.of
}

// newReader returns what reads the names from the network of a channel that is connected.
func (c *NameFinder) newReader(of listKey) (func(context.Context) (map[parley.ContactID]string, error), error) {
	names := map[parley.ContactID]string{}
	if of.groups {
		session, err := c.Groups(of.channel)
		return func(ctx context.Context) (map[parley.ContactID]string, error) {
			groups, _, err := session.Groups(ctx, parley.Page{Limit: maxGroups})
			for _, g := range groups {
				names[g.ID.Chat()] = g.Name
			}
			return names, err
		}, err
	}
	directory, err := c.Directory(of.channel)
	return func(ctx context.Context) (map[parley.ContactID]string, error) {
		contacts, _, err := directory.Contacts(ctx, parley.Page{Limit: maxNames})
		for _, one := range contacts {
			names[one.ID] = one.Name
		}
		return names, err
	}, err
}

// Search returns contacts and groups of some channels whose names contain a text. It takes no longer than a list may wait.
func (c *NameFinder) Search(ctx context.Context, channels []parley.ChannelCode, text string) []parley.ContactID {
	c.left = maxSearched
	defer func() { c.left = maxAsked }()
	ctx, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	text = strings.ToLower(text)
	found := map[parley.ContactID]bool{}
	for _, code := range channels {
		for _, groups := range []bool{false, true} {
			for id, name := range c.list(ctx, listKey{code, groups}) {
				if len(found) < maxMatches && strings.Contains(strings.ToLower(name), text) {
					found[id] = true
				}
			}
		}
	}
	ids := make([]parley.ContactID, 0, len(found))
	for id := range found {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
