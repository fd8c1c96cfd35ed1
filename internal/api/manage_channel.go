package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/gateway"
	"parley/internal/network"
	"parley/internal/network/sandbox"
	"parley/internal/stats"
	"parley/internal/store"
	"parley/internal/wire"
)

func toPace(least, most time.Duration) wire.Pace {
	return wire.Pace{Least: parley.Duration(least), Most: parley.Duration(most)}
}

func toChannel(c parley.Channel, on network.Info) wire.Channel {
	row := wire.Channel{
		Code: c.Code, Name: c.Name, Network: c.Network, Simulated: on.Simulated, Number: c.Number,
		Status: c.State.Status, Reason: c.State.Reason, Since: wire.At(c.State.Since),
		Enabled: c.Enabled, Labels: append([]string{}, c.Labels...), CreatedAt: wire.At(c.CreatedAt),
		Settings: c.Settings, Pace: toPace(on.Pace(c)), ArchiveOf: c.Settings.ArchiveOf,
	}
	if d := row.Settings.Pace; d != nil && *d == 0 && on.MostPace == 0 { // zero is the default
		row.Settings.Pace = nil
	}
	row.Settings.ClockAhead, row.Settings.ArchiveOf, row.Settings.ProxyKey = 0, "", ""
	return row
}

func (s *server) channel(c parley.Channel, activity store.ChannelActivity) wire.Channel {
	row := toChannel(c, s.config.Gateway.Network(c.Network))
	if c.Network == sandbox.Info.Name {
		row.Faults = s.config.Sandbox.WaitingFaults(c.Code)
	}
	restricted, until := s.config.Gateway.Restriction(c.Code)
	row.Restricted, row.RestrictedUntil = restricted, wire.At(until)
	if e, known := s.config.Gateway.Evidence(c.Code); known {
		row.Evidence = toEvidence(e)
	}
	if p, known := s.config.Gateway.Pairing(c.Code); known {
		row.Pairing = new(toPairing(p))
	}
	if current, there := s.config.Gateway.Channel(c.Code); there { // lists are made again only after other changes
		row.PairedAt, row.Today = wire.At(current.PairedAt), toUse(current, s.config.Gateway.Now(c.Code))
	}
	row.Waiting = s.config.Gateway.QueueDepth(c.Code)
	row.LastInboundAt, row.LastConfirmedAt = wire.At(activity.ReceivedAt), wire.At(activity.ConfirmedAt)
	row.Sent24h, row.Failed24h = activity.Sent, activity.Failed
	return row
}

// channelActivity reads the counters of the last day. Channels are shown without them if that fails.
func (s *server) channelActivity(ctx context.Context, channels []parley.Channel) map[parley.ChannelCode]store.ChannelActivity {
	codes := mapped(channels, func(c parley.Channel) parley.ChannelCode { return c.Code })
	activity, err := s.config.Store.ChannelActivity(ctx, time.Now().Add(-stats.Day), codes)
	if err != nil {
		s.config.Log.Warn("counters cannot be read", "error", err)
	}
	return activity
}

func (r *request) code() parley.ChannelCode { return parley.ChannelCode(r.http.PathValue("code")) }

func (s *server) readChannel(ctx context.Context, r *request) (any, error) {
	c, err := s.channelNamed(ctx, r.code())
	return s.channelResponse(ctx, "OK", c, err)
}

func (s *server) channelResponse(ctx context.Context, sentence string, c parley.Channel, err error) (any, error) {
	if err != nil {
		return nil, notFoundAs(err, errNoChannel)
	}
	row := s.channel(c, s.channelActivity(ctx, []parley.Channel{c})[c.Code])
	row.Cloud = s.describeAccount(ctx, c, false)
	return ok(sentence, row), nil
}

var errNoChannel = parley.Errorf(parley.NotFound, "This channel does not exist.")

func (s *server) createChannel(ctx context.Context, r *request) (any, error) {
	c := parley.Channel{
		Code:    r.newCode(),
		Name:    r.OptionalText("name", 1, 60),
		Network: parley.NetworkName(r.Choice("network", false, s.networkNames()...)),
		Labels:  r.labels("labels"),
	}
	c.Settings = r.settings(s.config.Gateway.Network(c.Network).Simulated)
	given, proxy := s.account(r, c.Network, true), r.proxy()
	c.Settings.Proxy, c.Settings.ProxyKey = proxy.shown, proxy.key
	err := r.Failed(func() error {
		if _, taken := s.config.Gateway.Channel(c.Code); taken {
			return gateway.ErrCodeExists
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	account, err := s.checkAccount(ctx, c, given)
	if err != nil {
		return nil, err
	}
	const sentence = "Channel created"
	c, err = s.config.Gateway.CreateChannel(ctx, c, func(tx *store.Tx, stored parley.Channel) error {
		return errors.Join(s.storeProxy(ctx, proxy)(tx, parley.Channel{}, stored),
			r.auditTx(ctx, tx, change{object: string(stored.Code), after: auditChannel(stored)}),
			r.storeKey(ctx, tx, http.StatusCreated, ok(sentence, toChannel(stored, s.config.Gateway.Network(stored.Network)))))
	})
	if err == nil && account != nil {
		if err = s.setAccount(ctx, c, account); err != nil { // it would not work
			_, undo := s.config.Gateway.DeleteChannel(ctx, c.Code)
			err = errors.Join(err, undo)
		}
	}
	r.accepted, r.replaces = err == nil, true // the response says more once the channel has started
	return s.accountResponse(ctx, sentence, c, err)
}

func (r *request) newCode() parley.ChannelCode {
	text := r.Text("code", 1, 1000)
	code, err := parley.ParseChannelCode(text)
	if text != "" && err != nil {
		r.Fail("code", "must be 1 to 32 lower-case letters, digits, - and _, beginning with a letter or digit.")
	}
	return code
}

const (
	maxPace    = time.Hour
	maxTTL     = 30 * 24 * time.Hour
	maxAllowed = 1000 // of an allow list; longer lists mean everybody
)

// settings reads the settings of a channel. A missing one has its default.
func (r *request) settings(simulated bool) parley.ChannelSettings {
	var settings parley.ChannelSettings
	f, isObject := r.Object("settings", false)
	if !isObject {
		return settings
	}
	settings.Pace = f.Duration("pace", 0, maxPace)
	if d := f.Duration("ttl", time.Second, maxTTL); d != nil {
		settings.TTL = *d
	}
	settings.Retention = f.Duration("retention", 0, 100*365*24*time.Hour)
	if d := f.Duration("window", time.Minute, parley.ReplyWindow); d != nil {
		if settings.Window = *d; !simulated {
			f.Fail("window", "is simulated on the sandbox only. Other networks have their own.")
		}
	}
	f.List("allow_only", 0, maxAllowed, false, func(f form.Form, index string) {
		settings.AllowOnly = append(settings.AllowOnly, f.ChatID(index))
	})
	if f, given := f.Object("cloud", false); given {
		settings.Cloud = cloudSettings(f)
	}
	if f.IsObject("careful") {
		inside, _ := f.Object("careful", false)
		settings.Careful = carefulSettings(inside)
	} else if f.Choice("careful", false, "off", "new_number") == "new_number" {
		settings.Careful = &parley.Careful{NewNumber: true}
	}
	if f, given := f.Object("calls", false); given {
		settings.Calls = &parley.CallSettings{Reject: f.Bool("reject", false), Text: f.OptionalText("text", 1, 4096)}
		if settings.Calls.Text != "" && !settings.Calls.Reject {
			f.Fail("text", "is sent only to callers who are rejected: set reject to true.")
		}
	}
	if f, given := f.Object("opt_out", false); given {
		settings.OptOut = optOutSettings(f)
	}
	return settings
}

const maxCap = 1_000_000 // messages of a careful channel in a day

func carefulSettings(f form.Form) *parley.Careful {
	c := &parley.Careful{Zone: f.OptionalText("zone", 1, 60), Typing: f.Bool("typing", false)}
	for name, cap := range map[string]*int{"first_contacts_per_day": &c.FirstContacts, "messages_per_day": &c.Messages} {
		if f.Has(name) {
			*cap = int(f.RequiredWhole(name, 1, maxCap))
		}
	}
	checkZone(f, c.Zone)
	if night, given := f.Object("night", false); given {
		c.Night = &parley.Night{From: night.Text("from", 5, 5), To: night.Text("to", 5, 5)}
		checkHours(night, c.Night.From, c.Night.To)
	}
	return c
}

// toUse is what left a careful channel today, and its caps; nil: it is not careful.
func toUse(c parley.Channel, now time.Time) *wire.CarefulUse {
	if c.Settings.Careful == nil {
		return nil
	}
	use, next := c.UseAt(now)
	firsts, messages := c.Settings.Careful.Caps(now.Sub(c.PairedAt))
	shown := &wire.CarefulUse{FirstContacts: use.Firsts, Messages: use.Messages, Until: wire.At(next)}
	if firsts > 0 {
		shown.FirstContactsCap = &firsts
	}
	if messages > 0 {
		shown.MessagesCap = &messages
	}
	return shown
}

// changeChannel changes the given fields. Settings are replaced as a whole: a missing one is reset.
func (s *server) changeChannel(ctx context.Context, r *request) (any, error) {
	now, _ := s.config.Gateway.Channel(r.code())
	simulated := s.config.Gateway.Network(now.Network).Simulated
	name, settings, labels, proxy := r.OptionalText("name", 1, 60), r.settings(simulated), r.labelChange(), r.proxy()
	if err := r.Err(); err != nil {
		return nil, err
	}
	changesSettings := r.Has("settings")
	c, err := s.config.Gateway.UpdateChannel(ctx, r.code(), func(c *parley.Channel) {
		if name != "" {
			c.Name = name
		}
		if changesSettings {
			before := c.Settings
			c.Settings = settings
			c.Settings.ClockAhead, c.Settings.ArchiveOf = before.ClockAhead, before.ArchiveOf
			c.Settings.Proxy, c.Settings.ProxyKey = proxy.shown, proxy.key
			if proxy.shown == before.Proxy && !proxy.secret {
				c.Settings.ProxyKey = before.ProxyKey
			}
		}
		c.Labels = labels(c.Labels)
	}, checkLabels, s.storeProxy(ctx, proxy), r.auditChannelChange(ctx))
	return s.channelResponse(ctx, "Channel changed", c, err)
}

// checkChannel returns an error if the channel was deleted. It runs in the transaction that adds to the channel.
func checkChannel(ctx context.Context, tx *store.Tx, c parley.Channel) error {
	return notFoundAs(tx.CheckChannel(ctx, c.Code, c.ID), parley.Errorf(parley.BadRequest, "Channel %s was deleted.", c.Code))
}

// auditChannelChange logs a change of a channel in its transaction.
func (r *request) auditChannelChange(ctx context.Context) gateway.InChange {
	return func(tx *store.Tx, before, after parley.Channel) error {
		return r.auditTx(ctx, tx, change{string(after.Code), auditChannel(before), auditChannel(after)})
	}
}

func (s *server) startChannel(ctx context.Context, r *request) (any, error) {
	c, err := s.config.Gateway.StartChannel(ctx, r.code(), r.auditChannelChange(ctx))
	return s.channelResponse(ctx, "Channel started", c, err)
}

func (s *server) stopChannel(ctx context.Context, r *request) (any, error) {
	c, err := s.config.Gateway.StopChannel(ctx, r.code(), r.auditChannelChange(ctx))
	return s.channelResponse(ctx, "Channel stopped", c, err)
}

func (s *server) logoutChannel(ctx context.Context, r *request) (any, error) {
	c, err := s.config.Gateway.LogoutChannel(ctx, r.code())
	return s.channelResponse(ctx, "Channel logged out", c, err)
}

type channelStateRow struct {
	Status parley.ChannelStatus `json:"status"`
	Reason string               `json:"reason"`
	At     string               `json:"at"`
}

const (
	maxStateDays = 30
	maxStates    = 1000 // in one response
)

// channelTimeline lists the statuses of the last days, newest first. The oldest began before them.
func (s *server) channelTimeline(ctx context.Context, r *request) (any, error) {
	days := r.Whole("days", 1, 1, maxStateDays)
	if err := r.Err(); err != nil {
		return nil, err
	}
	c, err := s.channelNamed(ctx, r.code())
	if err != nil {
		return nil, notFoundAs(err, errNoChannel)
	}
	states, err := s.config.Store.ChannelStates(ctx, c.Code, time.Now().AddDate(0, 0, -int(days)), maxStates)
	if len(states) == 0 { // never changed
		states = []parley.ChannelState{c.State}
	}
	return ok("OK", mapped(states, func(state parley.ChannelState) channelStateRow {
		return channelStateRow{state.Status, state.Reason, parley.Stamp(state.Since)}
	})), err
}
