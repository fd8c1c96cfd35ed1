package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/token"
	"parley/internal/wire"
)

// act does the work of a route. If its row names an act, success is in the audit log: in the transaction of the work if that calls
// auditTx there, else right after it.
func (rt *route) act(ctx context.Context, r *request) (response, error) {
	isAct := rt.audit != "" && (rt.access == ofAdmin || r.token.Kind == console)
	if isAct {
		r.action, r.from = rt.audit, rt.clientAddress(r.http).String()
	}
	a, err := rt.perform(ctx, r)
	if isAct && err == nil && !r.inAudit {
		rt.auditAfter(ctx, r)
	}
	return a, err
}

type auditedMessage struct {
	Channel parley.ChannelCode `json:"channel"`
	Type    parley.Kind        `json:"type"`
}

// auditMessages appends messages to the audit log, in the transaction that accepts them. An operation is logged with the message
// that it is about. The log has no text and no number.
func (r *request) auditMessages(ctx context.Context, tx *store.Tx, ms []parley.Message) error {
	for i := range ms {
		object := string(cmp.Or(toTarget(ms[i].Content).ID, ms[i].ID))
		after := auditedMessage{ms[i].Channel, ms[i].Content.Kind()}
		if err := r.auditTx(ctx, tx, change{object: object, after: after}); err != nil {
			return err
		}
	}
	return nil
}

// toTarget returns the message that an operation is about; without an id: none.
func toTarget(c parley.Content) parley.MessageRef {
	switch c := c.(type) {
	case parley.Reaction:
		return c.Target
	case parley.Seen:
		return c.Target
	case parley.Edit:
		return c.Target
	case parley.Delete:
		return c.Target
	case parley.Star:
		return c.Target
	}
	return parley.MessageRef{}
}

// change is what an act changed: an object before and after it, as it may be shown. Nil: it did not exist, or is not known.
type change struct {
	object        string
	before, after any
}

// auditTx appends the request's act to the audit log, in the transaction that does it.
func (r *request) auditTx(ctx context.Context, tx *store.Tx, c change) error {
	r.inAudit = true
	e := store.AuditEntry{At: time.Now(), Actor: r.actor(), Action: r.action, Object: c.object, Address: r.from, Request: r.id}
	var err error
	if e.Before, e.After, err = changedFields(c.before, c.after); err != nil {
		return err
	}
	return tx.AddAudit(ctx, e)
}

// auditAfter logs an act that has no transaction of its own. The act is done, so a failure is only reported.
func (s *server) auditAfter(ctx context.Context, r *request) {
	object := cmp.Or(r.http.PathValue("code")+r.http.PathValue("id"), string(r.channel.Code))
	err := s.tx(context.WithoutCancel(ctx), func(tx *store.Tx) error { return r.auditTx(ctx, tx, change{object: object}) })
	if err != nil {
		s.config.Log.Error("an act is missing in the audit log", "action", r.action, "object", object, "error", err)
	}
}

const (
	refusedEvery = time.Minute // one more refused act of a caller is logged
	refusedBurst = 10          // of a caller at once
)

type auditedRefusal struct {
	Route string      `json:"route"`
	Needs parley.Role `json:"needs"`
}

// auditRefused logs that a role did not suffice, at most refusedBurst times: nobody can flood the log.
func (rt *route) auditRefused(ctx context.Context, r *request) {
	if rt.refusals.Spend(r.token.ID, time.Now()).Refused {
		return
	}
	r.action, r.from = store.AuditRefused, rt.clientAddress(r.http).String()
	c := change{object: r.http.PathValue("code") + r.http.PathValue("id"), after: auditedRefusal{rt.name(), rt.role}}
	if err := rt.tx(context.WithoutCancel(ctx), func(tx *store.Tx) error { return r.auditTx(ctx, tx, c) }); err != nil {
		rt.config.Log.Error("a refused act is missing in the audit log", "route", rt.name(), "error", err)
	}
}

func (r *request) actor() store.Actor {
	a := store.Actor{Kind: store.ActorToken, ID: string(r.token.ID), Name: r.token.Name, Role: r.token.Role}
	switch {
	case r.token.Kind == console:
		a.Kind = store.ActorSession
	case token.IsLocal(r.token):
		a.Kind = store.ActorLocal
	}
	return a
}

// tokenID is the id of the request's token; empty: a console session has none.
func (r *request) tokenID() parley.TokenID {
	if r.token.Kind == console {
		return ""
	}
	return r.token.ID
}

// changedFields returns the fields of two objects that differ, as JSON.
func changedFields(before, after any) (old, new json.RawMessage, err error) {
	was, err := toFields(before)
	if err != nil {
		return nil, nil, err
	}
	is, err := toFields(after)
	if err != nil {
		return nil, nil, err
	}
	for name, value := range was {
		if other, both := is[name]; both && bytes.Equal(value, other) {
			delete(was, name)
			delete(is, name)
		}
	}
	return encodeFields(was), encodeFields(is), nil
}

func toFields(object any) (fields map[string]json.RawMessage, err error) {
	if object == nil {
		return nil, nil
	}
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	return fields, err
}

func encodeFields(fields map[string]json.RawMessage) json.RawMessage {
	if len(fields) == 0 {
		return nil
	}
	text, _ := json.Marshal(fields) // they were JSON before
	return text
}

type auditedChannel struct {
	Name     string                 `json:"name"`
	Network  parley.NetworkName     `json:"network"`
	Enabled  bool                   `json:"enabled"`
	Labels   []string               `json:"labels"`
	Settings parley.ChannelSettings `json:"settings"`
}

func auditChannel(c parley.Channel) auditedChannel {
	c.Settings.ProxyKey = ""
	return auditedChannel{c.Name, c.Network, c.Enabled, append([]string{}, c.Labels...), c.Settings}
}

type auditedToken struct {
	Name      string           `json:"name"`
	Kind      parley.TokenKind `json:"kind"`
	Channel   *string          `json:"channel,omitempty"`
	Role      *string          `json:"role,omitempty"`
	ExpiresAt *string          `json:"expires_at,omitempty"`
	Revoked   bool             `json:"revoked"`
}

func auditToken(t parley.Token) auditedToken {
	return auditedToken{t.Name, t.Kind, textOrNil(t.Channel), textOrNil(t.Role), stampOrNil(t.ExpiresAt), !t.RevokedAt.IsZero()}
}

type auditedWebhook struct {
	URL     string             `json:"url"`
	Channel *string            `json:"channel,omitempty"`
	Events  []parley.EventType `json:"events"`
	Links   string             `json:"media_links"`
	Enabled bool               `json:"enabled"`
}

func auditWebhook(w parley.Webhook) auditedWebhook {
	return auditedWebhook{withoutSecrets(w.URL), textOrNil(w.Channel), w.Types, mediaLinks[w.SignedMedia], w.IsEnabled()}
}

// shownAddress is as much of an address as the caller may see: below operators the rest may be a secret.
func (r *request) shownAddress(address string) string {
	if address == "" || r.token.Role.Includes(parley.Operator) {
		return address
	}
	return parley.ShortAddress(address)
}

// withoutSecrets hides the parts of an address that often are secrets: user, password and the values of the query.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	if u.User != nil {
		u.User = url.User("…")
	}
	query := u.Query()
	for name := range query {
		query.Set(name, "…")
	}
	u.RawQuery, u.Fragment = query.Encode(), ""
	shown, err := url.PathUnescape(u.String())
	if err != nil {
		return u.String()
	}
	return shown
}

// auditEntry is an entry as the caller may see it: only the audit log of operators and owners has the paths of addresses.
func (r *request) auditEntry(e store.AuditEntry) wire.AuditEntry {
	if !r.token.Role.Includes(parley.Operator) {
		e.Before, e.After = withShortURL(e.Before), withShortURL(e.After)
	}
	return wire.AuditEntry{ID: e.Seq, At: wire.At(e.At), ActorKind: string(e.Actor.Kind), Actor: e.Actor.ID, ActorName: e.Actor.Name,
		Role: e.Actor.Role, Action: e.Action, Object: wire.Text(e.Object), Address: wire.Text(e.Address), RequestID: e.Request,
		Before: e.Before, After: e.After}
}

func withShortURL(changed json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	var address string
	if json.Unmarshal(changed, &fields) != nil || json.Unmarshal(fields["url"], &address) != nil {
		return changed // it has no address
	}
	fields["url"], _ = json.Marshal(parley.ShortAddress(address)) // a text
	return encodeFields(fields)
}

func (s *server) listAudit(ctx context.Context, r *request) (any, error) {
	q := store.AuditQuery{
		Action: r.OptionalText("action", 1, 60), Actor: r.OptionalText("actor", 1, 100), Object: r.OptionalText("object", 1, 100),
		Since: r.Time("since"), Until: r.Time("until"),
	}
	page := seqPage(r.Form)
	if err := r.Err(); err != nil {
		return nil, err
	}
	entries, total, err := s.config.Store.Audit(ctx, q, page)
	entries, meta := cutPage(entries, page, total, func(e store.AuditEntry) int64 { return e.Seq })
	return envelope{Success: true, Message: "OK", Data: mapped(entries, r.auditEntry), Meta: meta}, err
}
