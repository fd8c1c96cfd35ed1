package api

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/internal/gateway"
	"parley/internal/store"
	"parley/internal/wire"
)

const (
	maxChannels     = 200 // in one response
	maxLabelsShown  = 100 // in meta
	maxChannelQuery = 100 // characters of a search
	leastFound      = 3   // digits of a number from which on a search looks for them alone
)

type channelsMeta struct {
	cursorMeta
	Total    int                          `json:"total"`
	Statuses map[parley.ChannelStatus]int `json:"statuses"`
	Networks map[parley.NetworkName]int   `json:"networks"`
	Labels   []labelCount                 `json:"labels"`
	Faults   int                          `json:"faults"`
}

type labelCount struct {
	Label    string `json:"label"`
	Channels int    `json:"channels"`
}

// channelQuery selects channels. Empty fields select all.
type channelQuery struct {
	search, digits string // in lower case; the digits of a search that looks like a number
	status         parley.ChannelStatus
	network        parley.NetworkName
	simulated      *bool
	label          string
}

// matches reports which of the filters a channel matches.
func (q channelQuery) matches(c parley.Channel, simulated bool) (search, status, network, label bool) {
	search = strings.Contains(string(c.Code), q.search) || strings.Contains(strings.ToLower(c.Name), q.search) ||
		strings.Contains(c.Number, cmp.Or(q.digits, q.search))
	network = (q.network == "" || q.network == c.Network) && (q.simulated == nil || *q.simulated == simulated)
	return search, q.status == "" || q.status == c.State.Status, network, q.label == "" || slices.Contains(c.Labels, q.label)
}

func (s *server) channelQuery(r *request) channelQuery {
	q := channelQuery{search: strings.ToLower(strings.TrimSpace(r.OptionalText("search", 0, maxChannelQuery)))}
	if digits, err := parley.ParseNumber(q.search); err == nil && len(digits) >= leastFound {
		q.digits = digits
	}
	if r.Has("status") {
		words := mapped(parley.ChannelStatuses, func(s parley.ChannelStatus) string { return string(s) })
		q.status = parley.ChannelStatus(r.Choice("status", true, words...))
	}
	if r.Has("network") {
		q.network = parley.NetworkName(r.Choice("network", true, s.networkNames()...))
	}
	if r.Has("simulated") {
		q.simulated = new(r.Bool("simulated", false))
	}
	if r.Has("label") {
		q.label = parseLabel(r.Form, "label")
	}
	return q
}

// urgency is how much a status needs attention; the least number needs it most.
var urgency = map[parley.ChannelStatus]int{parley.ChannelFailed: 0, parley.ChannelLoggedOut: 1, parley.ChannelScanQRCode: 2,
	parley.ChannelReconnecting: 3, parley.ChannelStarting: 4, parley.ChannelWorking: 5, parley.ChannelStopped: 6}

// channelSorts are the values of sort. Channels are sorted by the text that a function returns, and then by their code.
var channelSorts = map[string]func(*server, parley.Channel, store.ChannelActivity) string{
	"code": func(*server, parley.Channel, store.ChannelActivity) string { return "" },
	"name": func(_ *server, c parley.Channel, _ store.ChannelActivity) string { return strings.ToLower(c.Name) },
	"attention": func(s *server, c parley.Channel, a store.ChannelActivity) string {
		rank := urgency[c.State.Status] * 4
		if restricted, _ := s.config.Gateway.Restriction(c.Code); restricted {
			rank -= 2
		}
		if a.Failed > 0 {
			rank--
		}
		return sortable(int64(rank + 10))
	},
	"number": func(_ *server, c parley.Channel, _ store.ChannelActivity) string { return c.Number },
	"since": func(_ *server, c parley.Channel, _ store.ChannelActivity) string {
		return sortable(c.State.Since.UnixMilli())
	},
	"created_at": func(_ *server, c parley.Channel, _ store.ChannelActivity) string {
		return sortable(c.CreatedAt.UnixMilli())
	},
	"last_inbound_at": func(_ *server, _ parley.Channel, a store.ChannelActivity) string {
		return sortable(a.ReceivedAt.UnixMilli())
	},
	"last_confirmed_at": func(_ *server, _ parley.Channel, a store.ChannelActivity) string {
		return sortable(a.ConfirmedAt.UnixMilli())
	},
	"waiting": func(s *server, c parley.Channel, _ store.ChannelActivity) string {
		return sortable(int64(s.config.Gateway.QueueDepth(c.Code)))
	},
	"failed_24h": func(_ *server, _ parley.Channel, a store.ChannelActivity) string { return sortable(a.Failed) },
}

// sortable writes a number so that texts sort like numbers. What is below zero, the zero time included, is zero.
func sortable(n int64) string { return fmt.Sprintf("%019d", max(0, n)) }

// channelOrder is the order of a list, and the position from which it goes on.
type channelOrder struct {
	sort    string // as it was sent; - before it reverses the order
	after   channelKey
	goes    bool // it goes on after that
	byCount bool // it needs the counters of all channels
}

type channelKey struct {
	key  string
	code parley.ChannelCode
}

func (o channelOrder) compare(a, b channelKey) int {
	n := cmp.Or(strings.Compare(a.key, b.key), strings.Compare(string(a.code), string(b.code)))
	if strings.HasPrefix(o.sort, "-") {
		return -n
	}
	return n
}

// channelOrder reads sort and cursor. A cursor holds the sort, and the key and the code of the last row.
func (r *request) channelOrder() channelOrder {
	o := channelOrder{sort: "code"}
	if r.Has("sort") {
		words := slices.Sorted(maps.Keys(channelSorts))
		for _, word := range slices.Clone(words) {
			words = append(words, "-"+word)
		}
		o.sort = r.Choice("sort", true, words...)
	}
	o.byCount = !slices.Contains([]string{"code", "name", "number", "since", "created_at", "waiting"}, strings.TrimPrefix(o.sort, "-"))
	cursor := r.OptionalText("cursor", 1, 600)
	if cursor == "" {
		return o
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	sort, rest, ok := strings.Cut(string(text), "\n")
	code := strings.LastIndexByte(rest, '\n')
	if err != nil || !ok || sort != o.sort || code < 0 {
		r.Fail("cursor", "must be a cursor from an earlier response with the same sort.")
		return o
	}
	o.after, o.goes = channelKey{rest[:code], parley.ChannelCode(rest[code+1:])}, true
	return o
}

func (o channelOrder) cursor(last channelKey) string {
	return base64.RawURLEncoding.EncodeToString([]byte(o.sort + "\n" + last.key + "\n" + string(last.code)))
}

// listChannels lists channels in pages. Everything but counters is in memory, so a page costs little with any number of channels.
func (s *server) listChannels(ctx context.Context, r *request) (any, error) {
	q, order, limit := s.channelQuery(r), r.channelOrder(), int(r.Whole("limit", 50, 1, maxChannels))
	if err := r.Err(); err != nil {
		return nil, err
	}
	list := s.config.Gateway.List()
	found, meta := s.selectChannels(list, q)
	var activity map[parley.ChannelCode]store.ChannelActivity
	if order.byCount {
		activity = s.channelActivity(ctx, found)
	}
	key := channelSorts[strings.TrimPrefix(order.sort, "-")]
	toKey := func(c parley.Channel) channelKey { return channelKey{key(s, c, activity[c.Code]), c.Code} }
	if order.sort != "code" { // else they are sorted
		keys := make(map[parley.ChannelCode]channelKey, len(found))
		for _, c := range found {
			keys[c.Code] = toKey(c)
		}
		toKey = func(c parley.Channel) channelKey { return keys[c.Code] }
		found = slices.SortedFunc(slices.Values(found), func(a, b parley.Channel) int { return order.compare(keys[a.Code], keys[b.Code]) })
	}
	if order.goes {
		n, exact := slices.BinarySearchFunc(found, order.after, func(c parley.Channel, after channelKey) int {
			return order.compare(toKey(c), after)
		})
		if exact {
			n++
		}
		found = found[n:]
	}
	if len(found) > limit {
		found = found[:limit]
		meta.NextCursor = textOrNil(order.cursor(toKey(found[limit-1])))
	}
	if !order.byCount {
		activity = s.channelActivity(ctx, found)
	}
	row := func(c parley.Channel) wire.Channel { return s.channel(c, activity[c.Code]) }
	return envelope{Success: true, Message: "OK", Data: mapped(found, row), Meta: meta}, nil
}

// selectChannels returns the channels that match a query, by code, and counts them. Each count ignores the filter by what it counts,
// so that it shows what another choice would find. Without a query everything is counted already.
func (s *server) selectChannels(list *gateway.List, q channelQuery) (found []parley.Channel, meta channelsMeta) {
	meta.Statuses, meta.Networks = map[parley.ChannelStatus]int{}, map[parley.NetworkName]int{}
	for name := range s.config.Gateway.Drivers {
		meta.Networks[name] = 0
	}
	for _, status := range parley.ChannelStatuses {
		meta.Statuses[status] = 0
	}
	labels := map[string]int{}
	if q == (channelQuery{}) {
		maps.Copy(meta.Statuses, list.Statuses)
		maps.Copy(meta.Networks, list.Networks)
		found, labels = list.Channels, list.Labels
	} else {
		for _, c := range list.Channels {
			search, status, network, label := q.matches(c, s.config.Gateway.Network(c.Network).Simulated)
			if search && network && label {
				meta.Statuses[c.State.Status]++
			}
			if search && status && label {
				meta.Networks[c.Network]++
			}
			if search && status && network {
				for _, word := range c.Labels {
					labels[word]++
				}
			}
			if search && status && network && label {
				found = append(found, c)
			}
		}
	}
	meta.Faults = s.config.Sandbox.AllWaitingFaults()
	meta.Total, meta.Labels = len(found), []labelCount{}
	for word, n := range labels {
		meta.Labels = append(meta.Labels, labelCount{word, n})
	}
	slices.SortFunc(meta.Labels, func(a, b labelCount) int {
		return cmp.Or(b.Channels-a.Channels, strings.Compare(a.Label, b.Label))
	})
	meta.Labels = meta.Labels[:min(len(meta.Labels), maxLabelsShown)]
	return found, meta
}
